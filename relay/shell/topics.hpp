#pragma once
// What is known of each topic, and whether its rows may be published now. A topic is looked up at its first
// row, its partition count is pinned in the database, and both are refreshed from time to time. One that is
// missing or forbidden is held (its rows leave the claim's index) and probed until it is there; then the hold
// is released.
//
//   unknown ─► looking_up ─► pinning ─► ready ─► draining ─► repinning ─► ready
//                 │                       (another partition count: wait until nothing of the topic is in
//                 flight) └─ missing, forbidden ─► holding ─► unknown, with its probe running

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/backoff.hpp"
#include "relay/shell/workbench.hpp"

namespace outbox::relay {

struct Topic {
  enum class State { unknown, looking_up, pinning, ready, draining, repinning, holding };

  explicit Topic(std::string n, std::uint32_t i) : name(std::move(n)), number(i) {}

  std::string name;
  std::uint32_t number;
  State state = State::unknown;
  std::int32_t partitions = 0;  ///< pinned: what keys are spread over
  std::int64_t message_bytes_max = 0;
  std::int32_t partitions_seen = 0;  ///< by the latest look-up
  bool limit_assumed = false;        ///< message_bytes_max could not be read, and that was said
  MonoTime refresh_at{};
  bool refreshing = false;
  Backoff retry{{Millis{100}, Millis{5000}}, 4};

  TopicCounters counters{};
  std::deque<Row*> waiting;     ///< not published yet, by Row::order
  std::int64_t in_flight = 0;   ///< published, not reported
  MonoTime careful_until{};     ///< a refusal was seen: one message a partition in flight
  std::set<std::int32_t> busy;  ///< partitions with a message in flight, while careful

  bool held = false;  ///< by a relay's hold; probed
  MonoTime probe_at{};
  bool probing = false;
  Backoff probe{{Millis{1000}, Millis{30'000}}, 5};
};

[[nodiscard]] std::string_view to_string(Topic::State state) noexcept;

class Topics {
 public:
  explicit Topics(Workbench& bench) : bench_(bench) {}

  [[nodiscard]] Topic& of(std::string_view name);
  [[nodiscard]] Topic& at(std::uint32_t number) { return *topics_[number]; }
  [[nodiscard]] const std::vector<std::unique_ptr<Topic>>& all() const { return topics_; }

  /// True: publish now. False: what is needed was begun; `stir` comes when it changed.
  [[nodiscard]] bool ready(Topic& topic, MonoTime now);
  /// Kafka refused it as a topic: hold it. Its waiting rows are dropped.
  void unusable(Topic& topic, const std::string& reason);
  /// A tenure began: the topics' holds are read at once, and then from time to time, and probed.
  void begin();
  void pump(MonoTime now);
  [[nodiscard]] MonoTime wake_at() const { return wake_at_; }

 private:
  void read_holds();
  void look_up(Topic& topic);
  void looked_up(Topic& topic, Result<TopicFacts> facts);
  void take_facts(Topic& topic, const TopicFacts& facts);
  void pin(Topic& topic);
  void repin(Topic& topic);
  void hold(Topic& topic, const std::string& reason);
  void probe(Topic& topic);
  void release(Topic& topic);
  void later(Topic& topic, const Error& error, const char* what);

  Workbench& bench_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::unique_ptr<Topic>> topics_;
  Topic* latest_ = nullptr;  // rows of one topic mostly come in a row
  bool reading_holds_ = false;
  MonoTime read_holds_at_ = MonoTime::max();
  MonoTime wake_at_ = MonoTime::max();
};

}  // namespace outbox::relay
