#pragma once
// The outbox table and its neighbours as a plain in-memory model: what the SQL of the project promises,
// without the SQL. Each call is one atomic transaction at the moment it is made. The oracle reads it
// directly.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "relay/ports/source.hpp"

namespace outbox::test {

enum class RowStatus { pending, held, sent, dead, cancelled, discarded };

struct StoredRow {
  relay::RowId id;
  relay::Shard shard;
  Uuid msg_id;
  std::string topic;
  std::optional<std::string> key;
  std::optional<std::string> body;
  std::map<std::string, std::string> headers;
  std::optional<relay::Partition> asked;  ///< the partition that the row names
  WallTime created_at;
  std::optional<WallTime> available_at;
  std::int32_t generation = 0;
  RowStatus status = RowStatus::pending;
  std::string last_error;
  std::optional<relay::Partition> partition;
  std::optional<relay::Offset> offset;
  bool committed = false;
  bool locked = false;  ///< by an open transaction, as outbox_cancel does it
};

class FakeDatabase {
 public:
  /// Takes an id now; the row is seen by others only after commit().
  relay::RowId insert(StoredRow row);
  /// A row under an id that another one has already, as after TRUNCATE … RESTART IDENTITY.
  StoredRow& insert_again(relay::RowId id);
  void commit(relay::RowId id) {
    row(id).committed = true;
    running_.erase(id.value);
  }
  void erase(relay::RowId id) {
    rows_.erase(id.value);
    running_.erase(id.value);
  }
  /// What outbox_dead_retry does. False: it is not dead.
  bool retry(relay::RowId id);
  [[nodiscard]] StoredRow& row(relay::RowId id) { return rows_.find(id.value)->second; }
  [[nodiscard]] const std::multimap<std::int64_t, StoredRow>& rows() const { return rows_; }

  [[nodiscard]] relay::Batch claim(const relay::ClaimRequest& request, WallTime now) const;
  [[nodiscard]] relay::MarkReply mark(const std::vector<relay::SentRow>& rows, relay::AfterSent after);
  void bury(const relay::DeadRow& dead);
  void hold(const relay::HoldTarget& target, const std::string& reason) { holds_[target].relays = reason; }
  /// What outbox_pause and outbox_resume do, of one person.
  void pause(const relay::HoldTarget& target) { holds_[target].paused = true; }
  void resume(const relay::HoldTarget& target);
  void set_held(const std::vector<relay::RowName>& rows);
  [[nodiscard]] relay::Release release(const relay::HoldTarget& target);
  [[nodiscard]] std::vector<std::string> held_topics() const;
  /// Who holds it: a relay (Kafka's reason of a topic, a dead row's of a key), an operator, or both.
  struct Reasons {
    std::optional<std::string> relays{};
    bool paused = false;
  };
  [[nodiscard]] const std::map<relay::HoldTarget, Reasons>& holds() const { return holds_; }

  /// `now` is the database's clock.
  [[nodiscard]] relay::LeaseReply lease(const relay::LeaseRequest& request, MonoTime now);
  void give_back(const std::string& owner, const std::vector<relay::Lease>& lanes, relay::Leaving leaving);
  [[nodiscard]] bool still_leased(const relay::Lease& lease) const;

  [[nodiscard]] std::int32_t pin(const std::string& topic, std::int32_t current) {
    return pins_.try_emplace(topic, current).first->second;
  }
  void repin(const std::string& topic, std::int32_t partitions) { pins_[topic] = partitions; }

  [[nodiscard]] relay::LedgerStanding join_ledger();
  void settle_ledger(const std::vector<relay::LaneGeneration>& settled, const relay::Lease& lease);

  /// What the server's clock shows; it can be set.
  [[nodiscard]] MonoTime clock(MonoTime now) const { return now + clock_step; }
  std::chrono::hours clock_step{0};
  bool checks_epochs = true;       ///< false: a mutant
  bool checks_generations = true;  ///< false: a mutant
  MonoTime asleep_until{};
  std::optional<std::string> paused{};                   ///< by an operator: why
  std::function<void(const relay::SentRow&)> on_marked;  ///< the oracle's eye
  std::function<void()> on_lanes = [] {};                ///< what NOTIFY tells the instances

 private:
  struct LaneRecord {
    std::string owner;
    std::int64_t epoch = 0;
    MonoTime until{};
    Millis ttl{};
  };
  struct Instance {
    std::int16_t lanes = 0;
    std::int64_t since = 0;  ///< a number instead of a time: no two are the same
    MonoTime until{};
    Millis ttl{};
    std::string delivery{};
  };
  void announce(const relay::LeaseRequest& request, MonoTime now);
  void clock_set_back(MonoTime now);
  [[nodiscard]] bool switch_lanes(std::int16_t wanted, MonoTime now);
  /// The instance whose delivery is in force.
  [[nodiscard]] std::string in_force(MonoTime now) const;
  [[nodiscard]] std::int16_t lanes_wanted(const std::string& delivery) const;
  [[nodiscard]] std::int16_t share_of(const std::string& owner) const;
  [[nodiscard]] bool is_held(const StoredRow& row) const;
  [[nodiscard]] bool shard_wanted(const relay::ClaimRequest& request, const StoredRow& row) const;

  using Rows = std::multimap<std::int64_t, StoredRow>;
  [[nodiscard]] Rows::iterator find(const relay::RowName& name);
  /// True: nothing holds it any more, and its rows are let go.
  bool let_go(const relay::HoldTarget& target);

  Rows rows_;
  std::map<relay::HoldTarget, Reasons> holds_;
  std::map<std::string, std::int32_t> pins_;
  std::vector<LaneRecord> lanes_;
  std::int32_t generation_ = 0;                   // of the lanes
  std::map<std::int32_t, std::int16_t> ledgers_;  // lanes by generation
  std::map<std::string, Instance> instances_;
  std::int64_t next_since_ = 1;
  std::int64_t next_id_ = 1;
  std::set<std::int64_t> running_;  // transactions, each with the number of the row that it inserts
  std::int64_t releases_ = 0;
};

}  // namespace outbox::test
