#include "consumer/kafka/start.hpp"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <span>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "consumer/core/start.hpp"

namespace outbox {
namespace {

constexpr int answer_ms_max = 5000;  // for one request
constexpr int tries_max = 6;
constexpr Millis pause{500};

std::span<rd_kafka_topic_partition_t> elements(rd_kafka_topic_partition_list_t* list) {
  return {list->elems, static_cast<std::size_t>(list->cnt)};
}

/// The coordinator may be moving: the same request may be answered a moment later.
Status insist(const char* what, const std::function<bool()>& stopping,
              const std::function<rd_kafka_resp_err_t()>& request) {
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
  for (int tries = 0; tries < tries_max; ++tries) {
    if (tries > 0 && stopping && stopping()) break;
    if (tries > 0) std::this_thread::sleep_for(pause);
    if (error = request(); error == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  }
  const bool refused = error == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
                       error == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED;
  return failure(refused ? Disposition::fatal : Disposition::retry,
                 std::string(what) + ": " + rd_kafka_err2str(error), rd_kafka_err2name(error));
}

rd_kafka_resp_err_t first_error(rd_kafka_topic_partition_list_t* list) {
  for (const auto& element : elements(list))
    if (element.err != RD_KAFKA_RESP_ERR_NO_ERROR) return element.err;
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

Status fetch_committed(rd_kafka_t* client, rd_kafka_topic_partition_list_t* list,
                       const std::function<bool()>& stopping) {
  return insist("the group's committed offsets can't be read", stopping, [&] {
    const auto error = rd_kafka_committed(client, list, answer_ms_max);
    return error != RD_KAFKA_RESP_ERR_NO_ERROR ? error : first_error(list);
  });
}

Result<std::int32_t> partition_count(rd_kafka_t* client, const char* name,
                                     const std::function<bool()>& stopping) {
  const KafkaTopic topic{rd_kafka_topic_new(client, name, nullptr)};
  std::int32_t count = 0;
  const Status asked = insist("the topic's partitions can't be read", stopping, [&] {
    const rd_kafka_metadata_t* raw = nullptr;
    const auto error = rd_kafka_metadata(client, 0, topic.get(), &raw, answer_ms_max);
    const KafkaMetadata metadata{raw};
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return error;
    if (raw->topic_cnt == 1) count = raw->topics[0].partition_cnt;
    return raw->topic_cnt == 1 ? raw->topics[0].err : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
  });
  if (!asked) return failure(asked.error());
  return count;
}

std::string metadata_of(const rd_kafka_topic_partition_t& element) {
  return element.metadata ? std::string(static_cast<const char*>(element.metadata), element.metadata_size)
                          : std::string();
}

/// Asks about every partition of the topic, ours or not.
Result<std::int32_t> find_born(rd_kafka_t* client, const char* topic, const std::function<bool()>& stopping) {
  const auto count = partition_count(client, topic, stopping);
  if (!count) return failure(count.error());
  const KafkaList all{rd_kafka_topic_partition_list_new(*count)};
  rd_kafka_topic_partition_list_add_range(all.get(), topic, 0, *count - 1);
  if (const Status fetched = fetch_committed(client, all.get(), stopping); !fetched)
    return failure(fetched.error());
  std::vector<Committed> committed;
  for (const auto& element : elements(all.get())) {
    Committed one{.partition = element.partition, .metadata = metadata_of(element)};
    if (element.offset >= 0) one.next = element.offset;
    committed.push_back(std::move(one));
  }
  return born_of(committed);
}

Status start_at_end(rd_kafka_t* client, rd_kafka_topic_partition_t& element,
                    const std::function<bool()>& stopping) {
  std::int64_t low = 0, high = 0;
  Status asked = insist("the end of a partition can't be read", stopping, [&] {
    return rd_kafka_query_watermark_offsets(client, element.topic, element.partition, &low, &high,
                                            answer_ms_max);
  });
  if (!asked) return asked;
  element.offset = high;
  return {};
}

}  // namespace

rd_kafka_resp_err_t commit_and_wait(rd_kafka_t* client, const rd_kafka_topic_partition_list_t* offsets) {
  const KafkaQueue answers{rd_kafka_queue_new(client)};
  const auto sent = rd_kafka_commit_queue(client, offsets, answers.get(), nullptr, nullptr);
  if (sent != RD_KAFKA_RESP_ERR_NO_ERROR) return sent;
  const KafkaEvent answer{rd_kafka_queue_poll(answers.get(), answer_ms_max)};
  return answer ? rd_kafka_event_error(answer.get()) : RD_KAFKA_RESP_ERR__TIMED_OUT;
}

void set_metadata(rd_kafka_topic_partition_t& element, const std::string& metadata) {
  std::free(element.metadata);
  element.metadata = std::malloc(metadata.size());
  if (!element.metadata) throw std::bad_alloc();
  std::memcpy(element.metadata, metadata.data(), metadata.size());
  element.metadata_size = metadata.size();
}

Status set_starts(rd_kafka_t* client, rd_kafka_topic_partition_list_t* assigned, const StartRule& rule,
                  BornCounts& born) {
  if (assigned->cnt == 0) return {};
  if (Status fetched = fetch_committed(client, assigned, rule.stopping); !fetched) return fetched;
  const KafkaList decided{rd_kafka_topic_partition_list_new(assigned->cnt)};
  for (auto& element : elements(assigned)) {
    if (!born.contains(element.topic)) {
      const auto known = parse_born(metadata_of(element));
      const auto count =
          known ? Result<std::int32_t>(*known) : find_born(client, element.topic, rule.stopping);
      if (!count) return failure(count.error());
      born[element.topic] = *count;
    }
    if (const auto known = rule.of_partition.find({element.topic, element.partition});
        known != rule.of_partition.end())
      element.offset = known->second;
    if (element.offset >= 0) continue;
    const std::int32_t born_count = born[element.topic];
    element.offset = RD_KAFKA_OFFSET_BEGINNING;
    if (start_of(element.partition, born_count, rule.start_at) == StartAt::beginning) continue;
    if (Status at_end = start_at_end(client, element, rule.stopping); !at_end) return at_end;
    if (rule.remember) {
      const auto start = rule.remember({element.topic, element.partition}, element.offset);
      if (!start) return failure(start.error());
      element.offset = *start;
    }
    auto* one = rd_kafka_topic_partition_list_add(decided.get(), element.topic, element.partition);
    one->offset = element.offset;
    set_metadata(*one, born_metadata(born_count));
  }
  if (decided->cnt == 0) return {};
  return insist("the start of a new group can't be committed", rule.stopping,
                [&] { return commit_and_wait(client, decided.get()); });
}

}  // namespace outbox
