#pragma once
// Marks what Kafka acknowledged, and nothing else. Acks gather while a mark is under way and go with the next
// one, so a busy relay marks thousands of rows a statement and a quiet one marks each row at once. A mark
// that failed or whose reply was lost is repeated: it is safe to repeat, and until it is answered the row
// stays in flight.

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "base/backoff.hpp"
#include "relay/shell/workbench.hpp"

namespace outbox::relay {

class Marker {
 public:
  explicit Marker(Workbench& bench) : bench_(bench) {}

  enum class Outcome {
    settled,  ///< durably: marked, or it needs no mark any more
    lost,     ///< refused: another owner has the lane
  };
  /// Told of each row as it leaves.
  void watch(std::function<void(const Row&, Outcome)> watcher) { watcher_ = std::move(watcher); }

  /// `row` is in Stage::acked.
  void add(Row& row) { acked_.push_back(&row); }
  void pump(MonoTime now);
  [[nodiscard]] MonoTime wake_at() const { return acked_.empty() ? MonoTime::max() : retry_at_; }

 private:
  void send(std::vector<Row*> rows);
  void marked(const std::vector<Row*>& rows, const MarkReply& reply);
  void failed(std::vector<Row*> rows, const Error& error);

  void tell(const std::vector<Row*>& rows, const MarkReply& reply);

  Workbench& bench_;
  std::function<void(const Row&, Outcome)> watcher_;
  std::deque<Row*> acked_;
  std::int32_t under_way_ = 0;
  Backoff backoff_{{Millis{50}, Millis{5000}}, 2};
  MonoTime retry_at_{};
  bool failing_ = false;
};

}  // namespace outbox::relay
