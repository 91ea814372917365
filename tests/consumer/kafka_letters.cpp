#include "kafka_letters.hpp"

#include <librdkafka/rdkafka.h>

#include <memory>
#include <stdexcept>

#include "tests/support/kafka/handles.hpp"

namespace outbox::test {
namespace {

void send_one(rd_kafka_t* producer, const std::string& topic, const Letter& letter) {
  rd_kafka_headers_t* headers = rd_kafka_headers_new(letter.headers.size());
  for (const auto& [name, value] : letter.headers)
    rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()),
                        value ? value->data() : nullptr, value ? static_cast<ssize_t>(value->size()) : 0);
  const auto bytes = [](const std::optional<std::string>& text) {
    return text ? const_cast<char*>(text->data()) : nullptr;
  };
  const auto size = [](const std::optional<std::string>& text) { return text ? text->size() : 0; };
  const auto error = rd_kafka_producev(
      producer, RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_PARTITION(letter.partition),
      RD_KAFKA_V_KEY(bytes(letter.key), size(letter.key)),
      RD_KAFKA_V_VALUE(bytes(letter.body), size(letter.body)), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
      RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    rd_kafka_headers_destroy(headers);
    throw std::runtime_error(rd_kafka_err2str(error));
  }
}

}  // namespace

void send(const std::string& bootstrap, const std::string& topic, const std::vector<Letter>& letters) {
  const Client producer =
      make_client(RD_KAFKA_PRODUCER, {{"bootstrap.servers", bootstrap}, {"enable.idempotence", "true"}});
  for (const auto& letter : letters) send_one(producer.get(), topic, letter);
  if (rd_kafka_flush(producer.get(), 30'000) != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw std::runtime_error("not all was sent");
}

std::int64_t committed(const std::string& bootstrap, const std::string& group, const std::string& topic,
                       int partition) {
  const Client client =
      make_client(RD_KAFKA_CONSUMER, {{"bootstrap.servers", bootstrap}, {"group.id", group}});
  const PartitionList list{rd_kafka_topic_partition_list_new(1)};
  rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition);
  if (const auto error = rd_kafka_committed(client.get(), list.get(), 10'000);
      error != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw std::runtime_error(rd_kafka_err2str(error));
  return list->elems[0].offset < 0 ? -1 : list->elems[0].offset;
}

void forget_group(const std::string& bootstrap, const std::string& group) {
  const Client client = make_client(RD_KAFKA_PRODUCER, {{"bootstrap.servers", bootstrap}});
  const Owned<rd_kafka_DeleteGroup_t, rd_kafka_DeleteGroup_destroy> request{
      rd_kafka_DeleteGroup_new(group.c_str())};
  const Queue queue{rd_kafka_queue_new(client.get())};
  rd_kafka_DeleteGroup_t* requests[] = {request.get()};
  rd_kafka_DeleteGroups(client.get(), requests, 1, nullptr, queue.get());
  const Event event{rd_kafka_queue_poll(queue.get(), 30'000)};
  std::size_t count = 0;
  const auto* answers =
      event ? rd_kafka_DeleteGroups_result_groups(rd_kafka_event_DeleteGroups_result(event.get()), &count)
            : nullptr;
  if (count != 1 || rd_kafka_group_result_error(answers[0]) != nullptr)
    throw std::runtime_error("the group was not forgotten");
}

void delete_records(const std::string& bootstrap, const std::string& topic, int partition,
                    std::int64_t offset) {
  const Client client = make_client(RD_KAFKA_PRODUCER, {{"bootstrap.servers", bootstrap}});
  const PartitionList before{rd_kafka_topic_partition_list_new(1)};
  rd_kafka_topic_partition_list_add(before.get(), topic.c_str(), partition)->offset = offset;
  const Owned<rd_kafka_DeleteRecords_t, rd_kafka_DeleteRecords_destroy> request{
      rd_kafka_DeleteRecords_new(before.get())};
  const Queue queue{rd_kafka_queue_new(client.get())};
  rd_kafka_DeleteRecords_t* requests[] = {request.get()};
  rd_kafka_DeleteRecords(client.get(), requests, 1, nullptr, queue.get());
  const Event event{rd_kafka_queue_poll(queue.get(), 30'000)};
  if (!event || rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw std::runtime_error("records were not deleted");
}

RunningConsumer::RunningConsumer(ConsumerOptions options, Handler handler)
    : consumer_(std::move(options)), thread_([this, handler = std::move(handler)] {
        try {
          consumer_.run(handler);
        } catch (const ConsumerError& e) {
          error_ = e.what();
        }
        ended_ = true;
      }) {}

void RunningConsumer::stop() {
  consumer_.stop();
  if (thread_.joinable()) thread_.join();
}

std::string RunningConsumer::error() const {
  return ended_ ? error_ : std::string();
}

}  // namespace outbox::test
