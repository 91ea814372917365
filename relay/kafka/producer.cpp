#include "relay/kafka/producer.hpp"

#include <array>
#include <chrono>
#include <cstdint>

#include "base/check.hpp"
#include "relay/core/kafka/errors.hpp"
#include "relay/kafka/conf.hpp"

namespace outbox::relay {
namespace {

constexpr std::uint64_t wake_count = 1;  // what an eventfd is written
constexpr Millis last_reports{2'000};    // that are waited for after a purge

// librdkafka tells null from empty by the pointer, and an empty view may have none.
const void* pointer_of(std::string_view text) {
  return text.data() != nullptr ? text.data() : "";
}

rd_kafka_vu_t value(rd_kafka_vtype_t type, const std::optional<std::string_view>& text) {
  rd_kafka_vu_t field{};
  field.vtype = type;
  field.u.mem.ptr = text ? const_cast<void*>(pointer_of(*text)) : nullptr;
  field.u.mem.size = text ? text->size() : 0;
  return field;
}

KafkaHeaders copy_of(std::span<const Header> headers) {
  KafkaHeaders copy{rd_kafka_headers_new(headers.size())};
  for (const auto& [name, text] : headers) {
    rd_kafka_header_add(copy.get(), static_cast<const char*>(pointer_of(name)),
                        static_cast<ssize_t>(name.size()), text ? pointer_of(*text) : nullptr,
                        text ? static_cast<ssize_t>(text->size()) : 0);
  }
  return copy;
}

}  // namespace

Result<std::shared_ptr<KafkaProducer>> KafkaProducer::make(const KafkaOptions& options, int wake_fd) {
  if (const auto fit = check_kafka_version(); !fit) return failure(fit.error());
  auto conf = make_kafka_conf(options);
  if (!conf) return failure(conf.error());
  std::array<char, 512> text{};
  KafkaClient client{rd_kafka_new(RD_KAFKA_PRODUCER, conf->get(), text.data(), text.size())};
  if (!client)
    return failure(Disposition::fatal, "kafka: " + std::string{text.data()}, "", "correct the kafka section");
  (void)conf->release();  // the client's now
  std::shared_ptr<KafkaProducer> producer{new KafkaProducer{std::move(client)}};
  rd_kafka_set_log_queue(producer->handle(), producer->queue_.get());
  rd_kafka_queue_io_event_enable(producer->queue_.get(), wake_fd, &wake_count, sizeof wake_count);
  return producer;
}

KafkaProducer::KafkaProducer(KafkaClient client)
    : client_(std::move(client)), queue_(rd_kafka_queue_get_main(client_.get())) {}

KafkaProducer::~KafkaProducer() {
  silence();
  if (outstanding_ > 0) purge();
  while (poll()) continue;  // events hold messages, and messages hold the topics below
}

rd_kafka_resp_err_t KafkaProducer::produce(const Outgoing& out, std::string_view to,
                                           std::span<const Header> headers) {
  const Message& message = *out.message;
  rd_kafka_topic_t* where = topic(to);
  if (where == nullptr) return RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION;
  const std::uint32_t slot = take_slot(out);
  auto copied = copy_of(headers);

  std::array<rd_kafka_vu_t, 6> fields{};
  fields[0].vtype = RD_KAFKA_VTYPE_RKT;
  fields[0].u.rkt = where;
  fields[1].vtype = RD_KAFKA_VTYPE_PARTITION;
  fields[1].u.i32 = out.partition.value;
  fields[2] = value(RD_KAFKA_VTYPE_KEY, message.key);
  fields[3] = value(RD_KAFKA_VTYPE_VALUE, message.body);
  fields[4].vtype = RD_KAFKA_VTYPE_HEADERS;
  fields[4].u.headers = copied.get();
  fields[5].vtype = RD_KAFKA_VTYPE_OPAQUE;
  fields[5].u.ptr = reinterpret_cast<void*>(static_cast<std::uintptr_t>(slot) + 1);
  // No timestamp is given, so it is now: one taken from the row could be older than the topic's retention.
  const KafkaFailure failed{rd_kafka_produceva(client_.get(), fields.data(), fields.size())};
  if (!failed) {
    (void)copied.release();
    return RD_KAFKA_RESP_ERR_NO_ERROR;
  }
  leave_slot(fields[5].u.ptr);
  return rd_kafka_error_code(failed.get());
}

KafkaEvent KafkaProducer::poll(Millis patience) {
  return KafkaEvent{rd_kafka_queue_poll(queue_.get(), static_cast<int>(patience.count()))};
}

void KafkaProducer::take_deliveries(rd_kafka_event_t* event, std::vector<Delivery>& deliveries) {
  while (const rd_kafka_message_t* message = rd_kafka_event_message_next(event)) {
    const Slot slot = leave_slot(message->_private);
    auto& delivery = deliveries.emplace_back();
    delivery.token = slot.token;
    delivery.partition = slot.partition;
    delivery.offset = Offset{message->offset};
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    delivery.refusal = kafka_error(message->err).refusal;
    delivery.answered = cluster_answered(message->err);
    // Never rd_kafka_message_errstr(): of a produced message it answers the message's own body.
    delivery.reason = to_error(message->err, rd_kafka_err2str(message->err)).text();
  }
}

void KafkaProducer::purge() {
  rd_kafka_purge(client_.get(),
                 RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

void KafkaProducer::silence() {
  rd_kafka_queue_io_event_enable(queue_.get(), -1, nullptr, 0);
}

void KafkaProducer::give_up(std::vector<Delivery>& deliveries, const std::string& reason) {
  for (auto& slot : slots_) {
    if (!slot.used) continue;
    slot.used = false;
    deliveries.push_back({slot.token, slot.partition, Offset{}, Refusal::unsent, reason});
  }
  outstanding_ = 0;
}

std::vector<Delivery> KafkaProducer::retire() {
  std::vector<Delivery> deliveries;
  purge();
  const auto deadline = std::chrono::steady_clock::now() + last_reports;
  while (outstanding() > 0 && std::chrono::steady_clock::now() < deadline) {
    const auto event = poll(Millis{50});
    if (event && rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_DR)
      take_deliveries(event.get(), deliveries);
  }
  give_up(deliveries, "the producer ended before Kafka acknowledged it");
  for (auto& delivery : deliveries)
    if (delivery.refusal) delivery.refusal = Refusal::unsent;
  return deliveries;
}

rd_kafka_topic_t* KafkaProducer::topic(std::string_view name) {
  if (last_topic_ != nullptr && name == last_name_) return last_topic_;
  auto found = topics_.find(name);
  if (found == topics_.end()) {
    found = topics_.emplace(name, nullptr).first;
    found->second.reset(rd_kafka_topic_new(client_.get(), found->first.c_str(), nullptr));
  }
  last_topic_ = found->second.get();
  last_name_ = name;
  return last_topic_;
}

std::uint32_t KafkaProducer::take_slot(const Outgoing& out) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  slots_[index] = {out.token, out.partition, true};
  ++outstanding_;
  return index;
}

KafkaProducer::Slot KafkaProducer::leave_slot(const void* opaque) {
  const auto index = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(opaque) - 1);
  OUTBOX_CHECK(index < slots_.size() && slots_[index].used, "each message is reported once");
  slots_[index].used = false;
  free_.push_back(index);
  --outstanding_;
  return slots_[index];
}

}  // namespace outbox::relay
