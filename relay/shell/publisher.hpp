#pragma once
// Hands rows to Kafka in order and takes the delivery reports. Each topic has its own queue, so one that
// waits never stops the others. What can be known to be refused is found before it is sent (size, forged
// headers), since a broker refuses whole batches; after a refusal all the same, the topic goes on with one
// message a partition in flight until it was quiet for a while, so that the one refused alone is the one to
// blame.

#include <span>
#include <string>
#include <unordered_map>

#include "relay/shell/marker.hpp"
#include "relay/shell/queues.hpp"
#include "relay/shell/topics.hpp"
#include "relay/shell/workbench.hpp"

namespace outbox::relay {

class Publisher {
 public:
  Publisher(Workbench& bench, Topics& topics, Queues& queues, Marker& marker)
      : bench_(bench), topics_(topics), queues_(queues), marker_(marker) {}

  void pump(MonoTime now);
  void delivered(std::span<const Delivery> reports);
  /// When pump() has something to do without an event: a partition may be away by then.
  [[nodiscard]] MonoTime wake_at() const;
  /// True while Kafka still owes reports.
  [[nodiscard]] bool awaiting_reports() const { return unreported_ > 0; }

 private:
  enum class Step { published, left, blocked };
  struct Moment {  // of a batch of reports: the clocks are read once for all of them
    MonoTime mono;
    WallTime wall;
  };
  void publish_in_order(Topic& topic);
  void publish_carefully(Topic& topic);
  Step publish(Topic& topic, Row& row, Partition partition);
  [[nodiscard]] bool exhausted(const Row& row);
  void report(const Delivery& delivery, const Moment& now);
  void refused(Topic& topic, Row& row, const Delivery& delivery);
  void note_stalled_partitions(Topic& topic, MonoTime now);
  void back(Topic& topic, Partition partition);

  Workbench& bench_;
  Topics& topics_;
  Queues& queues_;
  Marker& marker_;
  std::int64_t unreported_ = 0;
  std::unordered_map<std::int64_t, std::int32_t>
      attempts_;           // of rows that were refused, by id; only with max_attempts
  std::int64_t away_ = 0;  // of those, rows of partitions that are away
};

}  // namespace outbox::relay
