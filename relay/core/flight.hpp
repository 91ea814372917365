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
#include <span>
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
  /// Shape: the rows of `batch` in publishing order (due rows merged in), each with its lane's lease.
  /// `leases` holds one entry a lane, by lane number; every row's lane must be in it.
  std::span<Row> admit(Batch batch, std::span<const std::optional<Lease>> leases, ClaimSerial claim,
                       MonoTime now);

  /// Kafka has it at `partition`, `offset`; its payload is not needed any more.
  void ack(Row& row, Partition partition, Offset offset);
  /// The row leaves: marked, buried, held or dropped. `row` is gone after the call.
  void settle(Row& row);

  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  [[nodiscard]] std::int64_t rows_of(LaneId lane) const { return lanes_[index(lane)].rows; }
  /// When the lane's latest batch was admitted.
  [[nodiscard]] MonoTime admitted_at(LaneId lane) const { return lanes_[index(lane)].admitted_at; }
  /// Ids in flight, of all lanes or of one: what a claim must leave out.
  [[nodiscard]] std::vector<RowId> ids() const;
  [[nodiscard]] std::vector<RowId> ids(LaneId lane) const;
  [[nodiscard]] std::vector<RowId> ids(const LaneSet& lanes) const;
  [[nodiscard]] std::int64_t rows_of(const LaneSet& lanes) const;

 private:
  struct LaneLoad {
    std::int64_t rows = 0;
    MonoTime admitted_at{};
  };
  static std::size_t index(LaneId lane) { return static_cast<std::size_t>(lane.value); }
  void drop_payload(Row& row);

  std::list<FlightBatch> batches_;
  std::array<LaneLoad, shard_count> lanes_{};
  std::int64_t rows_ = 0;
  std::int64_t bytes_ = 0;
  std::uint64_t next_order_ = 1;
};

}  // namespace outbox::relay
