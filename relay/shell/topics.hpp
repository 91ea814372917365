#pragma once
// What is known of each topic, and whether its rows may be published now. A topic is looked up at its first
// row, its partition count is pinned in the database, and both are refreshed from time to time. One that is
// missing or forbidden is held (its rows leave the claim's index) and probed until it is there; then the hold
// is released. Beyond the first topics_max, one that has nothing to do is forgotten: rows may name any number
// of them.
//
//   unknown ─► looking_up ─► pinning ─► ready ─► draining ─► repinning ─► ready
//                 │                       (another partition count: wait until nothing of it is in flight)
//                 └─ missing, forbidden ─► holding ─► unknown, with its probe running

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/backoff.hpp"
#include "relay/core/kafka/stalled_partitions.hpp"
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
  MonoTime facts_at{};               ///< when that look-up was asked for
  MonoTime refresh_at{};
  bool refreshing = false;
  /// Since then: lanes came from others, who may know another count. Nothing is published before it was seen.
  std::optional<MonoTime> unsure_since{};
  MonoTime unsure_again{};
  Backoff retry{{Millis{100}, Millis{5000}}, 4};

  TopicCounters counters{};
  std::deque<Row*> waiting;     ///< not published yet, by Row::order
  std::int64_t in_flight = 0;   ///< published, not reported
  MonoTime careful_until{};     ///< a refusal was seen: one message a partition in flight
  std::set<std::int32_t> busy;  ///< partitions with a message in flight, while careful
  StalledPartitions stalled_partitions;

  bool held = false;      ///< by a relay's hold; probed
  bool was_held = false;  ///< and let go, and none of its messages passed since
  MonoTime probe_at{};
  bool probing = false;
  Backoff probe{{Millis{1000}, Millis{30'000}}, 5};
  /// A probe asks whether the topic is there, which is less than what was refused: a topic that was let go and
  /// is refused again waits longer each time, until one of its messages passes. Each time costs two updates of
  /// every row behind it.
  Backoff relapse{{Millis{5000}, Millis{600'000}}, 6};

  MonoTime rests_until{};  ///< the cluster refused what may pass: nothing is published before
  Backoff refused{{Millis{100}, Millis{5000}}, 8};
  bool failing = false;     ///< a look-up or a write about it failed, and that was said
  bool drain_told = false;  ///< another partition count waits for a partition that is away, and that was said

  /// Its keys go to so many partitions from now on. Only while nothing of it is in flight.
  void spread_over(std::int32_t count);
  /// One of its messages is in Kafka: what was refused before says nothing any more.
  void passed();
  /// Nothing is known of it that would be missed, and no answer about it is awaited.
  [[nodiscard]] bool idle() const;
};

[[nodiscard]] std::string_view to_string(Topic::State state) noexcept;

class Topics {
 public:
  explicit Topics(Workbench& bench) : bench_(bench) {}

  [[nodiscard]] Topic& of(std::string_view name);
  [[nodiscard]] Topic& at(std::uint32_t number) { return *topics_[number]; }
  /// Those that were forgotten are null.
  [[nodiscard]] const std::vector<std::unique_ptr<Topic>>& all() const { return topics_; }
  /// What those had counted together.
  [[nodiscard]] const TopicCounters& forgotten() const { return forgotten_; }
  [[nodiscard]] std::size_t remembered() const { return numbers_.size(); }

  /// True: publish now. False: what is needed was begun; `schedule_turn` comes when it changed.
  [[nodiscard]] bool ready(Topic& topic, MonoTime now);
  /// What is known of the topic may be older than the row, which it speaks against: true, if it is looked up
  /// again first. The topic is not ready until then.
  [[nodiscard]] bool look_again(Topic& topic, const Row& row);
  /// Kafka refused it as a topic: hold it. Its waiting rows are dropped.
  void unusable(Topic& topic, const std::string& reason);
  /// Kafka refused what it may take later: the topic rests, for longer each time until a message passes.
  void rest(Topic& topic);
  /// Lanes came: the topics' holds are read at once, and then from time to time, and probed; and each topic
  /// is looked up before anything more is published to it, so that no key goes back to a partition that its
  /// last owner had left.
  void begin();
  void pump(MonoTime now);
  [[nodiscard]] MonoTime wake_at() const { return wake_at_; }

 private:
  void read_holds();
  void look_up(Topic& topic);
  void looked_up(Topic& topic, Result<TopicFacts> facts, MonoTime asked);
  void take_facts(Topic& topic, const TopicFacts& facts, MonoTime asked);
  void pin(Topic& topic);
  void repin(Topic& topic);
  void hold(Topic& topic, const std::string& reason);
  void probe(Topic& topic);
  void tell_drain(Topic& topic);
  [[nodiscard]] static Millis until_probe(Topic& topic);
  void release(Topic& topic);
  void later(Topic& topic, const Error& error, const char* what);
  void refresh(Topic& topic, MonoTime now);
  void forget_idle(MonoTime now);

  Workbench& bench_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::unique_ptr<Topic>> topics_;
  std::vector<std::uint32_t> free_numbers_;
  Topic* latest_ = nullptr;  // rows of one topic mostly come in a row
  std::int32_t probes_ = 0;
  MonoTime forget_at_{};
  TopicCounters forgotten_{};
  bool reading_holds_ = false;
  MonoTime read_holds_at_ = MonoTime::max();
  MonoTime wake_at_ = MonoTime::max();
};

}  // namespace outbox::relay
