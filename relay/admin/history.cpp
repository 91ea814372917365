#include "relay/admin/history.hpp"

namespace outbox::relay {
namespace {

double millis(Micros t) {
  return std::chrono::duration<double, std::milli>(t).count();
}

}  // namespace

void History::note(MonoTime now, std::int64_t marked, const Histogram& created_to_ack, std::int64_t pending) {
  if (noted_ && now > *noted_) {
    const double seconds = std::chrono::duration<double>(now - *noted_).count();
    const Histogram latest = created_to_ack.since(created_to_ack_);
    samples_.push_back({.sent_per_s = static_cast<double>(marked - marked_) / seconds,
                        .p50_ms = millis(latest.quantile(0.5)),
                        .p99_ms = millis(latest.quantile(0.99)),
                        .pending = pending});
    if (samples_.size() > samples_max) samples_.pop_front();
  }
  noted_ = now;
  marked_ = marked;
  created_to_ack_ = created_to_ack;
}

}  // namespace outbox::relay
