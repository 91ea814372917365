#pragma once
// A World of tests/contract/source_contract.hpp on the fakes that the simulation runs on, without faults.

#include <set>
#include <stdexcept>

#include "tests/contract/source_contract.hpp"
#include "tests/support/fakes/fake_source.hpp"

namespace outbox::test {

class FakeWorld {
 public:
  std::int64_t insert(const NewRow& row) {
    const std::int64_t id = row.id ? *row.id : next_id();
    const auto taken = database_.rows().find(id);
    const bool again = taken != database_.rows().end() && taken->second.committed;
    StoredRow& stored = again ? database_.insert_again(relay::RowId{id}) : database_.row(relay::RowId{id});
    stored.topic = row.topic;
    stored.key = row.key;
    stored.body = row.body;
    for (const auto& [name, value] : row.headers) stored.headers.emplace(name, value);
    const std::size_t hash = std::hash<std::string>{}(row.key ? *row.key : std::to_string(id));
    stored.shard = relay::Shard{static_cast<std::int16_t>(hash % relay::shard_count)};
    stored.msg_id = next_msg_id();
    if (row.partition) stored.asked = relay::Partition{*row.partition};
    stored.created_at = clock_.wall();
    if (row.due_in) stored.available_at = clock_.wall() + *row.due_in;
    if (!again) database_.commit(relay::RowId{id});
    return id;
  }
  std::int64_t next_id() { return database_.insert({}).value; }

  [[nodiscard]] std::optional<RowState> row(std::int64_t id) const {
    const auto at = database_.rows().find(id);
    if (at == database_.rows().end()) return std::nullopt;
    return state_of(at->second);
  }
  [[nodiscard]] std::vector<RowState> rows(std::int64_t id) const {
    std::vector<RowState> out;
    const auto [begin, end] = database_.rows().equal_range(id);
    for (auto at = begin; at != end; ++at) out.push_back(state_of(at->second));
    return out;
  }
  void replace(std::int64_t id) {
    StoredRow& stored = database_.row(relay::RowId{id});
    stored.msg_id = next_msg_id();
    stored.status = RowStatus::pending;
  }
  [[nodiscard]] static RowState state_of(const StoredRow& stored) {
    RowState state{.status = name_of(stored.status),
                   .last_error = stored.last_error,
                   .generation = stored.generation,
                   .msg_id = stored.msg_id};
    if (stored.partition) state.partition = stored.partition->value;
    if (stored.offset) state.offset = stored.offset->value;
    return state;
  }
  void cancel(std::int64_t id) { database_.row(relay::RowId{id}).status = RowStatus::cancelled; }
  void remove(std::int64_t id) { database_.erase(relay::RowId{id}); }
  void lock(std::int64_t id) { database_.row(relay::RowId{locked_ = id}).locked = true; }
  void unlock() { database_.row(relay::RowId{locked_}).locked = false; }
  void replay(std::int64_t id) {
    StoredRow& stored = database_.row(relay::RowId{id});
    stored.status = RowStatus::pending;
    ++stored.generation;
  }
  [[nodiscard]] bool hold_exists(const relay::HoldTarget& target) const {
    return database_.holds().contains(target);
  }
  void name_partitions() {}
  void pause(const relay::HoldTarget& target) { database_.pause(target); }
  void resume(const relay::HoldTarget& target) { database_.resume(target); }
  void retry(std::int64_t id) { database_.retry(relay::RowId{id}); }
  void pause(std::optional<std::string> reason) { database_.paused = std::move(reason); }
  [[nodiscard]] relay::Source& source() { return source_; }

  void pump(const std::function<bool()>& until) {
    for (int turn = 0; !until(); ++turn) {
      if (turn == 100'000) throw std::runtime_error("the fake source did not answer");
      pass(Millis{1});
    }
  }
  void pass(Millis time) { clock_.run(clock_.now() + time); }

 private:
  Uuid next_msg_id() {
    Uuid out;
    out.bytes[14] = static_cast<std::uint8_t>(++msg_ids_ >> 8);
    out.bytes[15] = static_cast<std::uint8_t>(msg_ids_);
    return out;
  }
  static std::string name_of(RowStatus status) {
    constexpr const char* names[] = {"PENDING", "HELD", "SENT", "DEAD", "CANCELLED", "DISCARDED"};
    return names[static_cast<int>(status)];
  }

  std::int32_t msg_ids_ = 0;
  SimClock clock_;
  SimLoop loop_{clock_};
  FakeDatabase database_;
  std::int64_t locked_ = 0;
  Chance chance_{1};
  SourceFaults faults_;
  FakeSource source_{clock_, loop_, database_, chance_, faults_};
};

}  // namespace outbox::test
