#pragma once
// Port Source over a FakeDatabase: each call travels for a while, takes effect in one moment, and its answer
// travels back. With `faults`, a call can be lost before it took effect (reconnect) or its answer after
// (in_doubt).

#include <memory>

#include "tests/support/fakes/fake_database.hpp"
#include "tests/support/fakes/sim_loop.hpp"

namespace outbox::test {

struct SourceFaults {
  std::int64_t lost_call_one_in = 0;  ///< 0: never
  std::int64_t lost_reply_one_in = 0;
  std::int64_t slow_one_in = 0;  ///< a second instead of a millisecond
};

class FakeSource : public relay::Source {
 public:
  FakeSource(SimClock& clock, relay::Loop& loop, FakeDatabase& database, Chance& chance,
             const SourceFaults& faults)
      : clock_(clock), loop_(loop), database_(database), chance_(chance), faults_(faults) {}
  ~FakeSource() override { *alive_ = false; }

  void start(Events events) override { events_ = std::move(events); }
  void stop() override { *alive_ = false; }
  void claim(relay::ClaimRequest request, relay::Done<relay::Batch> done) override;
  void mark(std::vector<relay::SentRow> rows, relay::AfterSent after,
            relay::Done<relay::MarkReply> done) override;
  void bury(relay::DeadRow row, relay::DoneStatus done) override;
  void hold(relay::HoldTarget target, std::string reason, relay::DoneStatus done) override;
  void set_held(std::vector<relay::RowName> rows, relay::DoneStatus done) override;
  void release(relay::HoldTarget target, relay::Done<relay::Release> done) override;
  void held_topics(relay::Done<std::vector<std::string>> done) override;
  void lease(relay::LeaseRequest request, relay::Done<relay::LeaseReply> done) override;
  void give_back(std::string owner, std::vector<relay::Lease> lanes, relay::Leaving leaving,
                 relay::DoneStatus done) override;
  void pin(std::string topic, std::int32_t current, relay::Done<std::int32_t> done) override;
  void repin(std::string topic, std::int32_t partitions, relay::DoneStatus done) override;
  void join_ledger(relay::Done<relay::LedgerStanding> done) override;
  void settle_ledger(std::vector<relay::LaneGeneration> settled, relay::Lease lease,
                     relay::DoneStatus done) override;
  void declare_asleep(Millis for_how_long, relay::DoneStatus done) override;

  /// What a trigger's NOTIFY does: reaches the process if it is up.
  void notify();
  /// The same for lanes that are free and for instances that came or left.
  void notify_lanes();
  /// Everything under way is lost, as when the process is killed; calls on their way may still take effect.
  void kill() { *alive_ = false; }

 private:
  void hint(std::function<void()> Events::*which);
  template <class T, class Call>
  void travel(Call call, relay::Done<T> done);

  SimClock& clock_;
  relay::Loop& loop_;
  FakeDatabase& database_;
  Chance& chance_;
  const SourceFaults& faults_;
  Events events_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace outbox::test
