#pragma once
// One pipeline: one outbox table, one producer, and those of the table's lanes that this process has.
// Composes the parts, owns the lane leases, and decides the phase. Lanes come and go while it works; one that
// exceeds its share is claimed no more, and given back once nothing of it is in flight. Everything runs on
// the loop's thread; whenever something changed, one turn looks at all parts in a fixed order.
//
//                    lanes granted         a lane lost, producer finished, other lanes
//   standby ───────────────────────► working ─────────────────────────────────► draining
//      ▲                                                                           │ nothing in flight any more
//      └───────────────────────────────────────────────────────────────────────────┘ (to working if leased)
//   working ── its last lane given back ──► standby
//   any ── stop() ──► stopping ── marked what was acked, or the time is up ──► stopped

#include <functional>
#include <memory>
#include <optional>

#include "relay/core/lanes/lane_leases.hpp"
#include "relay/shell/claimer.hpp"
#include "relay/shell/marker.hpp"
#include "relay/shell/publisher.hpp"
#include "relay/shell/settler.hpp"
#include "relay/shell/sleeper.hpp"
#include "relay/shell/topics.hpp"
#include "relay/shell/transactions.hpp"
#include "relay/shell/workbench.hpp"

namespace outbox::relay {

class Pipeline {
 public:
  enum class Phase { standby, working, draining, stopping, stopped };

  /// The ports must outlive the pipeline, and be stopped (by stop()) before they go.
  /// With a transactor everything is sent by it, exactly once; the broker then only looks topics up.
  Pipeline(PipelineOptions options, Loop& loop, Source& source, Broker& broker, log::Logger log,
           Transactor* transactor = nullptr);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  void start();
  /// Stops claiming, waits for acks up to stop_timeout, marks, gives all lanes back. `stopped` is called
  /// once.
  void stop(std::function<void()> stopped);

  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] const Counters& counters() const { return bench_.counters; }
  [[nodiscard]] std::int64_t rows_in_flight() const { return bench_.flight.rows(); }
  /// A copy of all that it tells about itself, with `topics_max` topics at the most, in the order of their
  /// first row; the rest stand together behind them, as `other_topics`.
  [[nodiscard]] Figures figures(std::size_t topics_max) const;
  /// Whether it makes progress.
  [[nodiscard]] Judgement judgement() const;
  [[nodiscard]] const LaneLeases& leases() const { return leases_; }
  [[nodiscard]] std::size_t topics_remembered() const { return topics_.remembered(); }

 private:
  void schedule_turn();
  void turn();
  void arm(MonoTime now);
  void keep_leases(MonoTime now);
  void leased(Result<LeaseReply> reply);
  [[nodiscard]] LeaseRequest lease_request(MonoTime now);
  [[nodiscard]] std::string_view delivery() const;
  void note_paused(std::string reason);
  void note_delivery(const std::optional<Differing>& differs);
  [[nodiscard]] bool paused() const { return !bench_.health.paused.empty(); }
  void leases_changed(LaneLeases::Change change);
  void lanes_gained();
  void apply_lanes();
  void leave_waiting();
  void publish(MonoTime now);
  void cut_off();
  [[nodiscard]] LaneSet claimable(MonoTime now) const;
  void hand_over(MonoTime now);
  void hand_over_overdue(MonoTime now);
  void send_give_back(std::vector<Lease> lanes);
  void drain(const char* why);
  void finish_draining(MonoTime now);
  void note_postgres(LinkState state, const std::string& why);
  void note_kafka(LinkState state, const std::string& why);
  void restart_producer();
  void keep_stopping(MonoTime now);
  void give_back();
  void close();
  [[nodiscard]] double sent_per_s(MonoTime now);

  Workbench bench_;
  LaneLeases leases_;
  Topics topics_{bench_};
  Marker marker_{bench_};
  Settler settler_{bench_};
  Queues queues_{bench_, topics_, settler_};
  Publisher publisher_{bench_, topics_, queues_, marker_};
  Sleeper sleeper_{bench_};
  Claimer claimer_;
  std::unique_ptr<Transactions> transactions_;
  Transactor* transactor_;

  Phase phase_ = Phase::standby;
  bool turn_scheduled_ = false;
  std::optional<Loop::TimerId> timer_;
  MonoTime timer_at_ = MonoTime::max();

  bool restart_wanted_ = false;
  bool restarting_ = false;
  MonoTime restart_at_{};
  Backoff restart_backoff_{{Millis{500}, Millis{10'000}}, 6};

  bool handing_over_ = false;               // a give-back is under way
  std::optional<MonoTime> draining_since_;  // lanes of a surplus
  bool standby_said_ = false;
  std::function<void()> stopped_;
  MonoTime stop_by_ = MonoTime::max();
  bool purged_ = false;
  bool giving_back_ = false;

  MonoTime rate_at_{};
  std::int64_t rate_marked_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // turns posted to the loop outlive nobody
};

[[nodiscard]] std::string_view to_string(Pipeline::Phase phase) noexcept;

}  // namespace outbox::relay
