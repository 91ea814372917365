#include "relay/kafka/ledger.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "relay/core/kafka/errors.hpp"
#include "relay/kafka/conf.hpp"
#include "relay/kafka/handles.hpp"

namespace outbox::relay {
namespace {

using Record = KafkaOwned<rd_kafka_message_t, rd_kafka_message_destroy>;
using Deadline = std::chrono::steady_clock::time_point;

constexpr std::int64_t first_look = 16;  // records from the end: the last one is mostly among them
constexpr std::int64_t wider = 16;       // times as many, where it is not
constexpr int slice_ms = 100;
constexpr int warning = 4;  // of syslog, as librdkafka counts

Millis left_until(Deadline deadline) {
  return std::chrono::duration_cast<Millis>(deadline - std::chrono::steady_clock::now());
}

Result<KafkaClient> make_reader(const KafkaOptions& options, const char* isolation) {
  auto conf = make_kafka_conf(options);
  if (!conf) return failure(conf.error());
  std::array<char, 512> why{};
  for (const auto& [name, value] : {std::pair{"isolation.level", isolation}, std::pair{"log.queue", "false"},
                                    std::pair{"enable.partition.eof", "true"},
                                    std::pair{"check.crcs", "true"}, std::pair{"fetch.wait.max.ms", "10"}})
    rd_kafka_conf_set(conf->get(), name, value, why.data(), why.size());
  rd_kafka_conf_set_log_cb(conf->get(), [](const rd_kafka_t*, int, const char*, const char*) noexcept {});
  KafkaClient client{rd_kafka_new(RD_KAFKA_CONSUMER, conf->get(), why.data(), why.size())};
  if (!client) return failure(Disposition::fatal, "kafka: " + std::string{why.data()});
  (void)conf->release();  // the client's now
  return client;
}

struct Bounds {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

// A broker is told of its leadership a moment after the metadata says so: asked again until the deadline.
Result<Bounds> bounds_of(const KafkaOptions& options, const std::string& topic, LedgerLane ledger_lane,
                         Deadline deadline, const std::atomic<bool>& stopping) {
  const auto reader = make_reader(options, "read_uncommitted");
  if (!reader) return failure(reader.error());
  Bounds bounds;
  auto error = RD_KAFKA_RESP_ERR__TIMED_OUT;
  while (left_until(deadline) > Millis{0} && !stopping) {
    const int patience_ms = static_cast<int>(std::min<std::int64_t>(left_until(deadline).count(), 1000));
    error = rd_kafka_query_watermark_offsets(reader->get(), topic.c_str(), ledger_lane.lane.value,
                                             &bounds.low, &bounds.high, std::max(patience_ms, 1));
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return bounds;
    rd_kafka_poll(reader->get(), slice_ms);
  }
  Error said = to_error(error, "the ledger's end in " + topic, rd_kafka_err2str(error));
  said.disposition = Disposition::retry;
  return failure(std::move(said));
}

struct Found {
  std::optional<LedgerRecord> last;
  std::int64_t foreign = 0;  // records under the lane's key that no lane wrote
};

std::string foreign_text(const std::string& topic, const Found& found) {
  return topic + ": " + std::to_string(found.foreign) +
         " records bear a lane's key and were not written by a lane: left aside; see who may write there";
}

class PartitionReader {
 public:
  PartitionReader(rd_kafka_t* client, const std::string& topic, std::int32_t partition)
      : topic_(rd_kafka_topic_new(client, topic.c_str(), nullptr)), partition_(partition) {}
  ~PartitionReader() { stop(); }
  PartitionReader(const PartitionReader&) = delete;
  PartitionReader& operator=(const PartitionReader&) = delete;

  bool start(std::int64_t from) {
    stop();
    started_ = rd_kafka_consume_start(topic_.get(), partition_, from) == 0;
    return started_;
  }
  Record next() { return Record{rd_kafka_consume(topic_.get(), partition_, slice_ms)}; }

 private:
  void stop() {
    if (std::exchange(started_, false)) rd_kafka_consume_stop(topic_.get(), partition_);
  }
  KafkaTopic topic_;
  std::int32_t partition_;
  bool started_ = false;
};

Result<LedgerRecord> decoded(const rd_kafka_message_t& record) {
  auto entry = decode_ledger_entry({static_cast<const char*>(record.payload), record.len});
  if (!entry) return failure(std::move(entry.error()));
  rd_kafka_timestamp_type_t type{};
  return LedgerRecord{std::move(*entry), Offset{record.offset},
                      WallTime{Millis{rd_kafka_message_timestamp(&record, &type)}}};
}

// A lane's record has no headers, and whatever a relay sends for a row has some: a row that was given the
// ledger's topic and a lane's key is told by them, also one that another process sent.
bool written_by_a_lane(const rd_kafka_message_t& record) {
  rd_kafka_headers_t* headers = nullptr;
  return rd_kafka_message_headers(&record, &headers) == RD_KAFKA_RESP_ERR__NOENT;
}

// The last record with that key in [from, end), which is read to its last offset.
Result<Found> last_between(PartitionReader& reader, const std::string& key, std::int64_t from,
                           std::int64_t end, Deadline deadline, const std::atomic<bool>& stopping) {
  Found found;
  if (!reader.start(from))
    return failure(Disposition::retry, "the ledger cannot be read from " + std::to_string(from));
  for (std::int64_t position = from; position < end;) {
    if (left_until(deadline) <= Millis{0} || stopping)
      return failure(Disposition::retry, "the ledger was read to " + std::to_string(position) + " of " +
                                             std::to_string(end) + " in time, and no further");
    const Record record = reader.next();
    if (!record) continue;
    if (record->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) position = std::max(position, record->offset);
    if (record->err == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
      return failure(Disposition::fatal, "the ledger may not be read", "",
                     "grant the relay READ on its topic");
    if (record->err != RD_KAFKA_RESP_ERR_NO_ERROR) continue;  // it reconnects by itself
    position = record->offset + 1;
    const bool ours = record->offset < end && record->payload != nullptr &&
                      std::string_view{static_cast<const char*>(record->key), record->key_len} == key;
    if (!ours) continue;
    if (!written_by_a_lane(*record)) {
      found.foreign += 1;
      continue;
    }
    auto read = decoded(*record);
    if (!read) return failure(std::move(read.error()));
    found.last = std::move(*read);
  }
  return found;
}

}  // namespace

Result<std::optional<LedgerRecord>> read_ledger(const KafkaOptions& options, const std::string& topic,
                                                LedgerLane ledger_lane, Millis patience,
                                                const std::atomic<bool>& stopping) {
  const Deadline deadline = std::chrono::steady_clock::now() + patience;
  const auto bounds = bounds_of(options, topic, ledger_lane, deadline, stopping);
  if (!bounds) return failure(bounds.error());
  if (bounds->high <= bounds->low) return std::nullopt;
  const auto client = make_reader(options, "read_committed");
  if (!client) return failure(client.error());
  PartitionReader reader{client->get(), topic, ledger_lane.lane.value};
  for (std::int64_t look = first_look;; look *= wider) {
    const std::int64_t from = std::max(bounds->low, bounds->high - look);
    auto found = last_between(reader, ledger_key(ledger_lane), from, bounds->high, deadline, stopping);
    if (!found) return failure(std::move(found.error()));
    if (!found->last && from != bounds->low) continue;
    if (!found->last && found->foreign > 0)
      return failure(Disposition::fatal,
                     "ledger topic " + topic + ": " + std::to_string(found->foreign) +
                         " records bear the lane's key, which no lane wrote, and may have displaced its own",
                     "",
                     "see who may write there; delete the records of the partition to go on, and rows that "
                     "were committed and not marked are sent twice");
    if (found->foreign > 0 && options.on_log) options.on_log(warning, "LEDGER", foreign_text(topic, *found));
    return std::move(found->last);
  }
}

}  // namespace outbox::relay
