#include "relay/kafka/reader.hpp"

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "relay/core/message/topic_name.hpp"
#include "relay/kafka/conf.hpp"
#include "relay/kafka/handles.hpp"

namespace outbox::relay {
namespace {

using KafkaMessage = KafkaOwned<rd_kafka_message_t, rd_kafka_message_destroy>;
using KafkaPartitions = KafkaOwned<rd_kafka_topic_partition_list_t, rd_kafka_topic_partition_list_destroy>;
using Setting = std::pair<const char*, const char*>;

constexpr std::array settings{
    Setting{"log.queue", "false"},
    Setting{"enable.auto.commit", "false"},
    Setting{"enable.partition.eof", "true"},  // markers and aborted records move it, and no record shows that
    Setting{"auto.offset.reset", "earliest"},  // retention may pass the offset; the caller looks at `low`
    Setting{"queued.max.messages.kbytes", "16384"},
    Setting{"fetch.wait.max.ms", "50"},
};

constexpr Millis pause{100};

Result<KafkaClient> make_client(const KafkaOptions& options, const char* isolation) {
  auto conf = make_kafka_conf(options);
  if (!conf) return failure(conf.error());
  std::array<char, 512> why{};
  const auto set = [&](const char* name, const char* value) {
    return rd_kafka_conf_set(conf->get(), name, value, why.data(), why.size()) == RD_KAFKA_CONF_OK;
  };
  bool taken = set("isolation.level", isolation);
  for (const auto& [name, value] : settings) taken = taken && set(name, value);
  if (!taken) return failure(Disposition::fatal, why.data());
  rd_kafka_conf_set_log_cb(conf->get(), [](const rd_kafka_t*, int, const char*, const char*) noexcept {});
  KafkaClient client{rd_kafka_new(RD_KAFKA_CONSUMER, conf->get(), why.data(), why.size())};
  if (!client) return failure(Disposition::fatal, why.data());
  static_cast<void>(conf->release());  // the client owns it now
  return client;
}

Error said(rd_kafka_resp_err_t error, const std::string& doing) {
  const bool refused = error == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
                       error == RD_KAFKA_RESP_ERR__AUTHENTICATION ||
                       error == RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED;
  return {refused ? Disposition::fatal : Disposition::retry, rd_kafka_err2name(error),
          doing + ": " + rd_kafka_err2str(error),
          refused ? "reading needs the right READ on the topic: use a configuration file whose kafka section "
                    "logs in as somebody who has it"
                  : ""};
}

// Leaders move, and a broker learns of it a moment after its clients.
template <class Ask>
rd_kafka_resp_err_t ask_until_led(Millis patience, Ask ask) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + patience;
  for (;;) {
    const auto left = std::chrono::duration_cast<Millis>(until - Clock::now());
    const auto error = ask(static_cast<int>(std::max(left, Millis{1}).count()));
    const bool moving = error == RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION ||
                        error == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE ||
                        error == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
    if (!moving || left <= pause) return error;
    std::this_thread::sleep_for(pause);
  }
}

std::string place(const std::string& topic, std::int32_t partition) {
  return "topic " + topic + ", partition " + std::to_string(partition);
}

std::optional<std::string_view> bytes(const void* data, std::size_t size) {
  if (data == nullptr) return std::nullopt;
  return std::string_view{static_cast<const char*>(data), size};
}

ReadRecord record_of(const rd_kafka_message_t& message) {
  rd_kafka_timestamp_type_t type{};
  ReadRecord out{.offset = message.offset,
                 .at = WallTime{Millis{rd_kafka_message_timestamp(&message, &type)}},
                 .key = bytes(message.key, message.key_len),
                 .body = bytes(message.payload, message.len)};
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return out;
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0;
       rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; ++i)
    out.headers.emplace_back(name, bytes(value, size));
  return out;
}

}  // namespace

std::optional<std::string_view> ReadRecord::header(std::string_view name) const {
  const auto found = std::ranges::find(headers, name, [](const auto& h) { return h.first; });
  return found == headers.end() ? std::nullopt : found->second;
}

struct KafkaReader::State {
  KafkaClient committed;  // reads, and knows the stable end
  KafkaClient plain;      // a reader of committed records does not see the true end
  KafkaTopic topic{};
  std::string name{};
  std::int32_t partition = -1;  // -1: none is read
  std::int64_t stable = 0;
  KafkaMessage last{};  // the views of the last record are into it
};

KafkaReader::KafkaReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
KafkaReader::KafkaReader(KafkaReader&&) noexcept = default;
KafkaReader& KafkaReader::operator=(KafkaReader&&) noexcept = default;
KafkaReader::~KafkaReader() {
  if (state_) stop();
}

Result<KafkaReader> KafkaReader::make(const KafkaOptions& options) {
  auto committed = make_client(options, "read_committed");
  if (!committed) return failure(committed.error());
  auto plain = make_client(options, "read_uncommitted");
  if (!plain) return failure(plain.error());
  return KafkaReader{std::make_unique<State>(State{std::move(*committed), std::move(*plain)})};
}

Result<std::optional<std::int32_t>> KafkaReader::partitions(const std::string& topic, Millis patience) {
  if (topic_name_fault(topic)) return std::optional<std::int32_t>{};
  const KafkaTopic handle{rd_kafka_topic_new(state_->plain.get(), topic.c_str(), nullptr)};
  const rd_kafka_metadata_t* raw = nullptr;
  auto error =
      rd_kafka_metadata(state_->plain.get(), 0, handle.get(), &raw, static_cast<int>(patience.count()));
  const KafkaMetadata metadata{raw};
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR && metadata->topic_cnt == 1) error = metadata->topics[0].err;
  if (error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) return std::optional<std::int32_t>{};
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return failure(said(error, "asking for topic " + topic));
  return std::optional{metadata->topics[0].partition_cnt};
}

Result<PartitionEnds> KafkaReader::ends(const std::string& topic, std::int32_t partition, Millis patience) {
  PartitionEnds out;
  for (const auto& [client, end] :
       {std::pair{state_->committed.get(), &out.stable}, std::pair{state_->plain.get(), &out.high}}) {
    const auto error = ask_until_led(patience, [&, of = client, to = end](int wait_ms) {
      return rd_kafka_query_watermark_offsets(of, topic.c_str(), partition, &out.low, to, wait_ms);
    });
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
      return failure(said(error, "asking where it ends: " + place(topic, partition)));
  }
  return out;
}

Result<std::int64_t> KafkaReader::offset_at(const std::string& topic, std::int32_t partition, WallTime at,
                                            Millis patience) {
  const KafkaPartitions list{rd_kafka_topic_partition_list_new(1)};
  auto* wanted = rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition);
  wanted->offset = std::chrono::duration_cast<Millis>(at.time_since_epoch()).count();
  const auto time = wanted->offset;
  const auto error = ask_until_led(patience, [&](int wait_ms) {
    wanted->offset = time;
    const auto answer = rd_kafka_offsets_for_times(state_->plain.get(), list.get(), wait_ms);
    return answer == RD_KAFKA_RESP_ERR_NO_ERROR ? wanted->err : answer;
  });
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    return failure(said(error, "looking for a time: " + place(topic, partition)));
  if (wanted->offset >= 0) return wanted->offset;
  return ends(topic, partition, patience).map([](const PartitionEnds& e) { return e.high; });
}

Status KafkaReader::start(const std::string& topic, std::int32_t partition, std::int64_t from,
                          std::int64_t stable) {
  stop();
  if (state_->name != topic) {
    state_->topic.reset(rd_kafka_topic_new(state_->committed.get(), topic.c_str(), nullptr));
    state_->name = topic;
  }
  state_->stable = stable;
  if (from >= stable) return {};
  if (rd_kafka_consume_start(state_->topic.get(), partition, from) != 0)
    return failure(said(rd_kafka_last_error(), "reading " + place(topic, partition)));
  state_->partition = partition;
  return {};
}

Result<std::optional<ReadRecord>> KafkaReader::next(Millis patience) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + patience;
  while (state_->partition >= 0) {
    const auto left = std::chrono::duration_cast<Millis>(until - Clock::now());
    if (left <= Millis{0})
      return failure(said(RD_KAFKA_RESP_ERR__TIMED_OUT, "reading " + place(state_->name, state_->partition)));
    state_->last.reset(
        rd_kafka_consume(state_->topic.get(), state_->partition, static_cast<int>(left.count())));
    rd_kafka_poll(state_->committed.get(), 0);
    if (!state_->last) continue;
    const rd_kafka_message_t& message = *state_->last;
    const bool eof = message.err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
    if (message.err != RD_KAFKA_RESP_ERR_NO_ERROR && !eof) {
      const Error error = said(message.err, "reading " + place(state_->name, state_->partition));
      if (error.disposition == Disposition::fatal) return failure(error);
      continue;  // it reconnects by itself, until the patience is over
    }
    if (message.offset >= state_->stable || eof) break;
    return std::optional{record_of(message)};
  }
  stop();
  return std::optional<ReadRecord>{};
}

void KafkaReader::stop() {
  if (state_->partition < 0) return;
  state_->last.reset();
  rd_kafka_consume_stop(state_->topic.get(), state_->partition);
  state_->partition = -1;
}

}  // namespace outbox::relay
