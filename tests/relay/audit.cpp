#include "audit.hpp"

#include <librdkafka/rdkafka.h>

#include <array>
#include <memory>
#include <stdexcept>

#include "tests/support/kafka/handles.hpp"

namespace outbox::test {
namespace {

constexpr int wait_ms = 30'000;

void must_kafka(rd_kafka_resp_err_t error, const char* doing) {
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw std::runtime_error(std::string{doing} + ": " + rd_kafka_err2str(error));
}

void must_kafka(rd_kafka_error_t* error, const char* doing) {
  const Owned<rd_kafka_error_t, rd_kafka_error_destroy> owned{error};
  if (owned) throw std::runtime_error(std::string{doing} + ": " + rd_kafka_error_string(owned.get()));
}

void produce(rd_kafka_t* client, const RecordOf& record) {
  rd_kafka_headers_t* headers = rd_kafka_headers_new(record.headers.size());
  for (const auto& [name, value] : record.headers)
    rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()), value.data(),
                        static_cast<ssize_t>(value.size()));
  const auto field = [](rd_kafka_vtype_t type, const std::optional<std::string>& text) {
    rd_kafka_vu_t out{};
    out.vtype = type;
    out.u.mem.ptr = text ? const_cast<char*>(text->data()) : nullptr;
    out.u.mem.size = text ? text->size() : 0;
    return out;
  };
  std::array<rd_kafka_vu_t, 7> fields{};
  fields[0].vtype = RD_KAFKA_VTYPE_TOPIC;
  fields[0].u.cstr = record.topic.c_str();
  fields[1].vtype = RD_KAFKA_VTYPE_PARTITION;
  fields[1].u.i32 = record.partition;
  fields[2] = field(RD_KAFKA_VTYPE_KEY, record.key);
  fields[3] = field(RD_KAFKA_VTYPE_VALUE, record.body);
  fields[4].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
  fields[4].u.i = RD_KAFKA_MSG_F_COPY;
  fields[5].vtype = RD_KAFKA_VTYPE_HEADERS;
  fields[5].u.headers = headers;
  const auto at = std::chrono::system_clock::now() - record.age;
  fields[6].vtype = RD_KAFKA_VTYPE_TIMESTAMP;
  fields[6].u.i64 = std::chrono::duration_cast<Millis>(at.time_since_epoch()).count();
  must_kafka(rd_kafka_produceva(client, fields.data(), fields.size()), "producing");
  must_kafka(rd_kafka_flush(client, wait_ms), "flushing");
}

pg::Params id_of(const Written& row) {
  pg::Params params;
  params.i64(row.id);
  return params;
}

}  // namespace

struct Audit::Producers {
  Client plain;
  std::vector<Client> transactional{};  // an open transaction lives as long as its producer
};

Audit::Audit(const std::string& source, const KafkaCluster::Configs& topic_settings)
    : rig_({.source = source}),
      topic_(KafkaCluster::shared().new_topic("audited", 2, topic_settings)),
      producers_(std::make_unique<Producers>(
          Producers{make_client(RD_KAFKA_PRODUCER, {{"bootstrap.servers", rig_.kafka()}})})) {
  ask("INSERT INTO outbox_topic (source, topic, partitions) VALUES ('public.outbox_msg', $1, 2)",
      pg::Params{}.text(topic_));
  ask("SELECT inbox_register('ledger', NULL)");
}

Audit::~Audit() = default;

Written Audit::write(const std::optional<std::string>& key, const std::optional<std::string>& body) {
  pg::Params params;
  params.text(topic_).text(key).untyped(body);
  const auto rows = must(rig_.sql().exec(
      "INSERT INTO outbox_msg (topic, msg_key, body) VALUES ($1, $2, $3::json) RETURNING id, msg_id, "
      "to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')",
      params));
  return {rows.integer(0, 0), std::string{rows.text(0, 1)}, std::string{rows.text(0, 2)}};
}

RecordOf Audit::record_of(const Written& row, const std::optional<std::string>& key,
                          const std::optional<std::string>& body) const {
  return {.topic = topic_,
          .key = key,
          .body = body,
          .headers = {{"outbox-id", row.msg_id},
                      {"outbox-seq", std::to_string(row.id)},
                      {"outbox-created-at", row.created_at},
                      {"outbox-source", "rig"}}};
}

// The only one who writes: the next offset is the record's.
std::int64_t Audit::publish(const RecordOf& record, Ending ending) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  // A broker is told of its leadership a moment after the metadata says so.
  eventually("the partition's leader answers", [&] {
    return rd_kafka_query_watermark_offsets(producers_->plain.get(), record.topic.c_str(), record.partition,
                                            &low, &high, wait_ms) == RD_KAFKA_RESP_ERR_NO_ERROR;
  });
  if (ending == Ending::none) {
    produce(producers_->plain.get(), record);
    return high;
  }
  producers_->transactional.push_back(make_client(
      RD_KAFKA_PRODUCER,
      {{"bootstrap.servers", rig_.kafka()}, {"transactional.id", KafkaCluster::unique_topic("audit")}}));
  rd_kafka_t* client = producers_->transactional.back().get();
  must_kafka(rd_kafka_init_transactions(client, wait_ms), "init");
  must_kafka(rd_kafka_begin_transaction(client), "begin");
  produce(client, record);
  if (ending == Ending::committed) must_kafka(rd_kafka_commit_transaction(client, wait_ms), "commit");
  if (ending == Ending::aborted) must_kafka(rd_kafka_abort_transaction(client, wait_ms), "abort");
  return high;
}

void Audit::mark(const Written& row, std::int32_t partition, std::int64_t offset) {
  ask("UPDATE outbox_msg SET status = 'SENT', sent_at = now() - interval '1 hour', kafka_partition = $2, "
      "kafka_offset = $3 WHERE id = $1",
      id_of(row).i32(partition).i64(offset));
}

void Audit::process(const Written& row, std::int64_t offset, const std::optional<std::string>& body) {
  pg::Params params = id_of(row);
  params.i64(offset).text(body);
  ask("INSERT INTO processed_msgs (consumer, msg_id, id_time, payload_sha256, topic, partition, \"offset\") "
      "SELECT 'ledger', msg_id, outbox_id_time(msg_id), coalesce(sha256(convert_to($3, 'UTF8')), "
      "decode(repeat('00', 32), 'hex')), topic, 0, $2 FROM outbox_msg WHERE id = $1",
      params);
}

Written Audit::send(const std::optional<std::string>& key, const std::optional<std::string>& body) {
  Written row = write(key, body);
  const auto offset = publish(record_of(row, key, body));
  mark(row, 0, offset);
  process(row, offset, body);
  return row;
}

void Audit::expire(std::int64_t offset) {
  const PartitionList before{rd_kafka_topic_partition_list_new(1)};
  rd_kafka_topic_partition_list_add(before.get(), topic_.c_str(), 0)->offset = offset;
  const Owned<rd_kafka_DeleteRecords_t, rd_kafka_DeleteRecords_destroy> request{
      rd_kafka_DeleteRecords_new(before.get())};
  const Queue queue{rd_kafka_queue_new(producers_->plain.get())};
  rd_kafka_DeleteRecords_t* requests[] = {request.get()};
  rd_kafka_DeleteRecords(producers_->plain.get(), requests, 1, nullptr, queue.get());
  const Event event{rd_kafka_queue_poll(queue.get(), wait_ms)};
  if (!event) throw std::runtime_error("records were not deleted");
  must_kafka(rd_kafka_event_error(event.get()), "deleting records");
}

}  // namespace outbox::test
