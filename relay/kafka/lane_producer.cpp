#include "relay/kafka/lane_producer.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.hpp"
#include "base/crash_point.hpp"
#include "relay/core/kafka/errors.hpp"
#include "relay/kafka/ledger.hpp"
#include "relay/kafka/ledger_topic.hpp"

namespace outbox::relay {
namespace {

constexpr Millis poll_slice{50};

Status failed(const char* what, KafkaFailure error) {
  if (!error) return {};
  Error said = to_error(rd_kafka_error_code(error.get()), what, rd_kafka_error_string(error.get()));
  said.disposition = Disposition::in_doubt;
  return failure(std::move(said));
}

// What is refused for want of a right a person has to mend; all else passes.
Status initialised(rd_kafka_t* client, Millis patience) {
  const KafkaFailure error{rd_kafka_init_transactions(client, static_cast<int>(patience.count()))};
  if (!error) return {};
  const auto code = rd_kafka_error_code(error.get());
  Error said =
      to_error(code, "the lane's transactional id cannot be taken", rd_kafka_error_string(error.get()));
  said.disposition = Disposition::retry;
  if (code == RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED ||
      code == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED) {
    said.disposition = Disposition::fatal;
    said.advice = "grant the relay DESCRIBE and WRITE on the transactional ids outboxd-PIPELINE-*";
  }
  return failure(std::move(said));
}

MonoTime now() {
  return std::chrono::steady_clock::now();
}

}  // namespace

LaneProducer::LaneProducer(const LaneProducerOptions& options, const OpenRequest& request)
    : options_(options), request_(request), envelope_(options.kafka.envelope) {
  options_.kafka.batch_bytes_max = request.batch_bytes_max;
  options_.kafka.transactional_id = transactional_id(options.pipeline, request.ledger, request.ledger_lane);
}

Result<std::unique_ptr<LaneProducer>> LaneProducer::open(const LaneProducerOptions& options,
                                                         const OpenRequest& request,
                                                         const std::atomic<bool>& stopping) {
  std::unique_ptr<LaneProducer> ledger_lane{new LaneProducer{options, request}};
  if (auto status = ledger_lane->initialise(stopping); !status) return failure(std::move(status.error()));
  return ledger_lane;
}

Status LaneProducer::initialise(const std::atomic<bool>& stopping) {
  auto producer = KafkaProducer::make(options_.kafka, no_wake_fd);
  if (!producer) return failure(producer.error());
  producer_ = std::move(*producer);
  auto topic = ensure_ledger_topic(producer_->handle(), options_.ledger_topic, request_.lanes,
                                   options_.patience, stopping);
  if (!topic) return topic;
  auto fenced = initialised(producer_->handle(), options_.patience);
  if (!fenced) return fenced;
  crash_here(CrashPoint::once_lane_fenced);
  KafkaOptions reader = options_.kafka;
  reader.transactional_id.clear();
  auto last = read_ledger(reader, options_.ledger_topic, request_.ledger_lane, options_.patience, stopping);
  if (!last) return failure(std::move(last.error()));
  if (!*last) return {};
  LedgerEntry& entry = (*last)->entry;
  if (entry.ledger != request_.ledger || entry.ledger_lane != request_.ledger_lane)
    return failure(Disposition::fatal,
                   "ledger topic " + options_.ledger_topic + ": it was written by another outbox, " +
                       to_string(entry.ledger),
                   "", "give each pipeline a ledger.topic of its own");
  rows_ = std::move(entry.rows);
  return {};
}

TransactionEnd LaneProducer::send(const std::vector<Outgoing>& messages, const std::atomic<bool>& give_up) {
  OUTBOX_CHECK(producer_ != nullptr, "a lane is used no more after an end that was not committed");
  TransactionEnd end;
  if (auto status = run(messages, end, give_up); !status) {
    end.error = std::move(status.error());
    if (producer_ && end.refused.empty()) trace(messages, end, give_up);
    end.offsets.clear();
    producer_.reset();
    return end;
  }
  end.committed = true;
  return end;
}

Status LaneProducer::run(const std::vector<Outgoing>& messages, TransactionEnd& end,
                         const std::atomic<bool>& give_up) {
  deadline_ = now() + options_.kafka.transaction_timeout;
  deliveries_.clear();
  auto begun =
      failed("a transaction cannot begin", KafkaFailure{rd_kafka_begin_transaction(producer_->handle())});
  if (!begun) return begun;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto headers = envelope_.headers(*messages[i].message);
    if (!headers) {
      end.refused.push_back({i, Refusal::message, headers.error().text()});
      return failure(headers.error());
    }
    const std::string topic = options_.kafka.topics.to_kafka(messages[i].message->topic);
    if (auto produced = produce({messages[i].message, messages[i].partition, i}, topic, *headers); !produced)
      return produced;
  }
  crash_here(CrashPoint::once_transaction_open);
  auto reported = await_reports(give_up);
  end.offsets.assign(messages.size(), Offset{-1});
  for (const Delivery& d : deliveries_) {
    if (!d.refusal)
      end.offsets[d.token] = d.offset;
    else if (*d.refusal == Refusal::message || *d.refusal == Refusal::topic)
      end.refused.push_back({static_cast<std::size_t>(d.token), *d.refusal, d.reason});
  }
  if (!reported) return reported;
  const auto delivered = std::ranges::count_if(deliveries_, [](const Delivery& d) { return !d.refusal; });
  if (delivered != std::ssize(messages))
    return failure(Disposition::in_doubt, std::to_string(delivered) + " of " +
                                              std::to_string(messages.size()) +
                                              " messages were delivered: not committed");
  if (auto written = write_ledger(messages, end, give_up); !written) return written;
  if (give_up) return failure(Disposition::in_doubt, "given up before its commit");
  crash_here(CrashPoint::once_ledger_written);  // whoever sleeps here is stopped by Kafka alone
  auto committed = commit();
  crash_here(CrashPoint::once_transaction_committed);
  return committed;
}

// Kafka refuses a transaction as a whole for one topic that it may not carry: then no report names a message.
// Why is told by beginning another one, which an open transaction refuses with its own error.
std::optional<Error> LaneProducer::refusal() const {
  const KafkaFailure failed{rd_kafka_begin_transaction(producer_->handle())};
  if (!failed || rd_kafka_error_txn_requires_abort(failed.get()) == 0) return std::nullopt;
  const auto code = rd_kafka_error_code(failed.get());
  const Refusal meant = kafka_error(code).refusal;
  if (meant != Refusal::topic && meant != Refusal::message) return std::nullopt;
  return to_error(code, rd_kafka_err2str(code));
}

// By halves over the topics, each tried with its first message. None of it is ever committed, and whoever opens
// the lane next ends what is open. Without a clear answer nobody is named, and the next time begins anew.
void LaneProducer::trace(const std::vector<Outgoing>& messages, TransactionEnd& end,
                         const std::atomic<bool>& give_up) {
  auto why = refusal();
  if (!why) return;
  std::map<std::string_view, std::size_t> firsts;
  for (std::size_t i = 0; i < messages.size(); ++i) firsts.try_emplace(messages[i].message->topic, i);
  std::vector<std::size_t> suspects;
  for (const auto& [topic, first] : firsts) suspects.push_back(first);
  bool proven = suspects.size() == 1;
  while (!proven) {
    const auto half = suspects.size() == 1
                          ? suspects
                          : std::vector(suspects.begin(), suspects.begin() + std::ssize(suspects) / 2);
    const Trial trial = try_out(messages, half, give_up);
    if (trial == Trial::unclear || (trial == Trial::taken && suspects.size() == 1)) return;
    if (trial == Trial::refused) {
      why = refusal();
      suspects = half;
      proven = suspects.size() == 1;
    } else {
      suspects.erase(suspects.begin(), suspects.begin() + std::ssize(half));
    }
  }
  const std::string_view topic = messages[suspects.front()].message->topic;
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (messages[i].message->topic == topic) end.refused.push_back({i, Refusal::topic, why->text()});
  end.error = std::move(*why);
  end.error->disposition = Disposition::in_doubt;
}

LaneProducer::Trial LaneProducer::try_out(const std::vector<Outgoing>& messages,
                                          std::span<const std::size_t> which,
                                          const std::atomic<bool>& give_up) {
  const auto patience = static_cast<int>(options_.patience.count());
  static_cast<void>(await_reports(give_up));  // librdkafka's abort waits until they are taken
  deliveries_.clear();
  if (producer_->outstanding() > 0 ||
      KafkaFailure{rd_kafka_abort_transaction(producer_->handle(), patience)} ||
      KafkaFailure{rd_kafka_begin_transaction(producer_->handle())})
    return Trial::unclear;
  for (const std::size_t i : which) {
    const auto headers = envelope_.headers(*messages[i].message);
    const std::string topic = options_.kafka.topics.to_kafka(messages[i].message->topic);
    if (!headers || !produce({messages[i].message, messages[i].partition, i}, topic, *headers)) {
      if (!refusal()) return Trial::unclear;
      break;
    }
  }
  const bool taken = await_reports(give_up).has_value();
  if (refusal()) return Trial::refused;
  return taken ? Trial::taken : Trial::unclear;
}

Status LaneProducer::produce(const Outgoing& out, std::string_view topic, std::span<const Header> headers) {
  for (;;) {
    const auto error = producer_->produce(out, topic, headers);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
    if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL || now() > deadline_) {
      Error said = to_error(error, "topic " + std::string{out.message->topic}, rd_kafka_err2str(error));
      said.disposition = Disposition::in_doubt;
      return failure(std::move(said));
    }
    if (const auto event = producer_->poll(poll_slice)) take(event.get());
  }
}

Status LaneProducer::await_reports(const std::atomic<bool>& give_up) {
  while (producer_->outstanding() > 0) {
    if (fatal_) return failure(*fatal_);
    if (give_up) return failure(Disposition::in_doubt, "given up before its messages were delivered");
    if (now() > deadline_)
      return failure(Disposition::in_doubt, std::to_string(producer_->outstanding()) +
                                                " messages were not delivered within transaction.timeout.ms");
    if (const auto event = producer_->poll(poll_slice)) take(event.get());
  }
  const auto refused =
      std::ranges::find_if(deliveries_, [](const Delivery& d) { return d.refusal.has_value(); });
  if (refused == deliveries_.end()) return {};
  return failure(Disposition::in_doubt, "a message was not delivered: " + refused->reason);
}

Status LaneProducer::write_ledger(const std::vector<Outgoing>& messages, const TransactionEnd& end,
                                  const std::atomic<bool>& give_up) {
  LedgerEntry entry{request_.ledger, request_.ledger_lane, {}};
  entry.rows.reserve(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i)
    entry.rows.push_back({messages[i].message->id, messages[i].message->msg_id,
                          messages[i].message->generation, messages[i].partition, end.offsets[i]});
  const std::string key = ledger_key(request_.ledger_lane);
  const std::string value = encode_ledger_entry(entry);
  Message record;
  record.topic = options_.ledger_topic;
  record.key = key;
  record.body = value;
  deliveries_.clear();
  Status written = produce({&record, Partition{request_.ledger_lane.lane.value}, 0}, record.topic, {});
  if (written) written = await_reports(give_up);
  if (written) return written;
  if (const auto why = refusal())
    written = failure(Disposition::in_doubt, "ledger topic " + options_.ledger_topic + ": " + why->message,
                      why->code, "grant the relay WRITE on it");
  producer_.reset();  // before `value` goes
  return written;
}

Status LaneProducer::commit() {
  const auto patience = static_cast<int>(options_.patience.count());
  return failed("the commit was not answered with success",
                KafkaFailure{rd_kafka_commit_transaction(producer_->handle(), patience)});
}

void LaneProducer::take(rd_kafka_event_t* event) {
  switch (rd_kafka_event_type(event)) {
    case RD_KAFKA_EVENT_DR:
      producer_->take_deliveries(event, deliveries_);
      break;
    case RD_KAFKA_EVENT_ERROR:
      if (rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR__FATAL ||
          rd_kafka_event_error_is_fatal(event) != 0) {
        std::array<char, 512> text{};
        const auto cause = rd_kafka_fatal_error(producer_->handle(), text.data(), text.size());
        fatal_ = to_error(cause, "the lane's producer has ended", text.data());
        fatal_->disposition = Disposition::in_doubt;
      }
      break;
    case RD_KAFKA_EVENT_LOG: {
      const char* facility = "";
      const char* text = "";
      int level = 0;
      if (rd_kafka_event_log(event, &facility, &text, &level) == 0 && options_.kafka.on_log)
        options_.kafka.on_log(level, facility, text);
      break;
    }
    default:
      break;
  }
}

}  // namespace outbox::relay
