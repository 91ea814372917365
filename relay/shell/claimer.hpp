#pragma once
// Sends the claims that the plan asks for, and takes on what they bring: claimed rows go into the flight and
// the queues, or stay PENDING.

#include <functional>
#include <vector>

#include "relay/core/lanes/lane_leases.hpp"
#include "relay/shell/queues.hpp"
#include "relay/shell/workbench.hpp"

namespace outbox::relay {

class Claimer {
 public:
  /// What it asks of the pipeline while a claim's answer is worked off.
  struct Owner {
    std::function<bool(MonoTime)> working;           ///< the lanes are still ours; else the rows stay PENDING
    std::function<bool(LaneId, ClaimSerial)> takes;  ///< rows of this lane that the claim brought are wanted
    std::function<void(MonoTime)> publish;           ///< rows were queued
  };

  Claimer(Workbench& bench, const LaneLeases& leases, Queues& queues, Owner owner)
      : bench_(bench), leases_(leases), queues_(queues), owner_(std::move(owner)) {}

  /// All claims that may start now.
  void pump(MonoTime now);
  /// The lanes that are claimed from now on. Claims under way still answer.
  void set_lanes(const LaneSet& lanes);
  [[nodiscard]] const LaneSet& lanes() const { return lanes_; }

 private:
  struct Sent {
    std::vector<Shard> shards;
    std::vector<RowId> floors;
    MonoTime at;
  };
  void send(const Claim& claim, MonoTime now);
  [[nodiscard]] ClaimRequest request_of(const Claim& claim, MonoTime now);
  void claimed(const Claim& claim, const Sent& sent, Result<Batch> batch);
  ClaimYield take(const Claim& claim, Batch batch, MonoTime now);
  void leave_out_foreign(std::vector<Message>& rows, ClaimSerial claim);
  void leave_waiting(const std::vector<Message>& waiting, MonoTime now);
  void note_look(const ClaimYield& yield, MonoTime now);

  Workbench& bench_;
  const LaneLeases& leases_;
  Queues& queues_;
  Owner owner_;
  LaneSet lanes_{};
  bool failing_ = false;
  MonoTime tell_locked_at_{};
};

}  // namespace outbox::relay
