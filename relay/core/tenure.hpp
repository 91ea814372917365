#pragma once
// How long this process may work its lanes. Judged by the process's own monotonic clock and counted from
// before the lease was asked for, so that a slow answer, a jump of the wall clock or a paused process can
// only shorten it. Pure.

#include <optional>
#include <span>
#include <vector>

#include "relay/core/types.hpp"

namespace outbox::relay {

class Tenure {
 public:
  enum class Change { none, begun, renewed, ended };

  explicit Tenure(Millis ttl, std::int16_t lanes) : ttl_(ttl), leases_(static_cast<std::size_t>(lanes)) {}

  /// Time for a request: every third of the ttl, sooner after a failure or when another owner's lease runs
  /// out.
  [[nodiscard]] bool request_due(MonoTime now) const { return !asking_ && now >= next_request_; }
  void requested(MonoTime now);
  /// The answer to the request: `held` empty means that another owner has the lanes for `other_remaining`.
  Change answered(std::span<const Lease> held, Millis other_remaining, MonoTime now);
  void failed(MonoTime now);
  /// Ends it where its time has run out.
  Change expire(MonoTime now);

  [[nodiscard]] bool active() const { return active_; }
  /// When it ends unless renewed; only while active.
  [[nodiscard]] MonoTime ends_at() const { return ends_at_; }
  [[nodiscard]] MonoTime next_request() const { return next_request_; }
  [[nodiscard]] bool asking() const { return asking_; }
  /// One entry a lane, by lane number; nullopt: not ours.
  [[nodiscard]] std::span<const std::optional<Lease>> leases() const { return leases_; }

 private:
  [[nodiscard]] bool same(std::span<const Lease> held) const;
  void end();

  Millis ttl_;
  std::vector<std::optional<Lease>> leases_;
  bool active_ = false;
  bool asking_ = false;
  MonoTime asked_at_{};
  MonoTime ends_at_{};
  MonoTime next_request_{};
};

}  // namespace outbox::relay
