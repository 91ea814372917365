#pragma once
// Every row that was claimed and is not settled yet. A row enters by admit(), walks through its stages, and
// leaves by settle(); what is in here is excluded from later claims and counted against the budgets. Pure
// bookkeeping, one thread.
//
//   waiting ──publish──► published ──ack──► acked ──mark──► settled
//      │                    └──refused──► waiting │ leaving │ settled (dropped: still PENDING, claimed again)
//      └──dead or held──► leaving ──recorded──► settled

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

#include "relay/core/types.hpp"

namespace outbox::relay {

enum class Stage : std::uint8_t { waiting, published, acked, leaving, settled };

using ClaimSerial = StrongId<struct ClaimSerialTag, std::uint64_t>;

struct FlightBatch;

struct Row {
  Message message;  ///< its views are valid until the row is acked or settled
  Lease lease;      ///< under which it was claimed
  ClaimSerial claim;
  std::uint64_t order = 0;  ///< of admission: rising within a key
  FlightBatch* batch = nullptr;
  Partition partition;
  Offset offset;
  std::int64_t bytes = 0;   ///< what it counts against the byte budget
  std::uint32_t topic = 0;  ///< the publisher's number of its topic
  bool alone = false;       ///< published with nothing else of its partition in flight
  bool away = false;        ///< published, and its partition does not answer: no part of the load
  Stage stage = Stage::waiting;
};

struct FlightBatch {
  std::vector<Row> rows;
  std::vector<std::shared_ptr<const void>> memory;  ///< dropped once no row needs its payload
  std::size_t payloads = 0;                         ///< rows whose payload is still needed
  std::size_t unsettled = 0;
  MonoTime admitted_at{};
  std::list<FlightBatch>::iterator self;
};

class Flight {
 public:
  /// Shape: `rows` in publishing order (due_order.hpp), each with its lane's lease; `memory` is what their
  /// views point into. `leases` holds one entry a lane, by lane number; every row's lane must be in it.
  std::span<Row> admit(const std::vector<Message>& rows, std::vector<std::shared_ptr<const void>> memory,
                       std::span<const std::optional<Lease>> leases, ClaimSerial claim, MonoTime now);

  /// Kafka has it at `partition`, `offset`; its payload is not needed any more.
  void ack(Row& row, Partition partition, Offset offset);
  /// A published row whose partition does not answer: from now on it is no part of the load.
  void leave_away(Row& row);
  /// Kafka has reported it, or gave it back: it counts again.
  void come_back(Row& row);
  /// A row that is not in flight is left out of claims all the same, until include(). False: it was already.
  bool exclude(const RowName& row, LaneId lane) { return excluded_[index(lane)].insert(row).second; }
  void include(const RowName& row, LaneId lane) { excluded_[index(lane)].erase(row); }
  /// The row leaves: marked, buried, held or dropped. `row` is gone after the call.
  void settle(Row& row);

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  [[nodiscard]] std::int64_t rows_of(LaneId lane) const { return lanes_[index(lane)].rows; }
  /// What counts against the budgets: everything but the rows whose partition is away.
  [[nodiscard]] std::int64_t load_rows() const { return rows_ - away_rows_; }
  [[nodiscard]] std::int64_t load_bytes() const { return bytes_ - away_bytes_; }
  [[nodiscard]] std::int64_t load_rows_of(LaneId lane) const {
    return lanes_[index(lane)].rows - lanes_[index(lane)].away;
  }
  [[nodiscard]] std::int64_t load_rows_of(const LaneSet& lanes) const;
  /// What a claim of these lanes must leave out, in flight or excluded: the rows, and how many.
  [[nodiscard]] std::vector<RowName> left_out_rows(const LaneSet& lanes) const;
  [[nodiscard]] std::int64_t left_out(const LaneSet& lanes) const;
  /// Calls `visit(Row&)` for each row in flight.
  template <class Visit>
  void each(Visit visit) {
    for (FlightBatch& batch : batches_)
      for (Row& row : batch.rows)
        if (row.stage != Stage::settled) visit(row);
  }
  /// When the lane's latest batch was admitted.
  [[nodiscard]] MonoTime admitted_at(LaneId lane) const { return lanes_[index(lane)].admitted_at; }
  [[nodiscard]] std::int64_t rows_of(const LaneSet& lanes) const;

 private:
  struct LaneLoad {
    std::int64_t rows = 0;
    std::int64_t away = 0;
    MonoTime admitted_at{};
  };
  static std::size_t index(LaneId lane) { return static_cast<std::size_t>(lane.value); }
  void drop_payload(Row& row);

  std::list<FlightBatch> batches_;
  std::array<LaneLoad, shard_count> lanes_{};
  std::int64_t rows_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t away_rows_ = 0;
  std::int64_t away_bytes_ = 0;
  std::array<std::unordered_set<RowName>, shard_count> excluded_{};
  std::uint64_t next_order_ = 1;
};

}  // namespace outbox::relay
