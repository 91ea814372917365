#pragma once
// The laws of the port Source (relay/ports/source.hpp), as doctest cases over a World: the real outbox table,
// or the fake that the simulation runs on. A file that names its world says OUTBOX_SOURCE_CONTRACT(World)
// once.
//
// A World starts empty with a started source, and has:
//   std::int64_t insert(const NewRow&)           commits a row, returns its id
//   std::int64_t next_id()                       takes an id from the sequence, for a row that commits late
//   std::optional<RowState> row(std::int64_t)    a row as it stands
//   std::vector<RowState> rows(std::int64_t)     all rows of that id
//   void replace(id)                             the id is given out again: it names another row, PENDING
//   void cancel(id) · void remove(id) · void replay(id)    what others do to a row: CANCELLED, deleted,
//   PENDING again with
//                                                a higher generation
//   void lock(id) · void unlock()                an open transaction has the row, as after outbox_cancel; it is
//                                                rolled back
//   void name_partitions()                       from now on rows may name their partition; an empty world
//   bool hold_exists(const HoldTarget&)
//   void pause(const HoldTarget&) · void resume(const HoldTarget&)    as an operator does it
//   void retry(id)                               a dead row, as an operator does it
//   void pause(std::optional<std::string> reason)    as an operator does it to the whole pipeline; nullopt:
//   lets it go Source& source() void pump(const std::function<bool()>& until)    turns the loop until then;
//   throws after a deadline void pass(Millis)                            lets time go by

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "relay/ports/source.hpp"

namespace outbox::test {

struct NewRow {
  std::string topic = "payment.created";
  std::optional<std::string> key = "account-1";
  std::optional<std::string> body = R"({"amount":1})";  ///< valid JSON, so that every column type takes it
  std::vector<std::pair<std::string, std::string>> headers{};
  std::optional<std::int32_t> partition{};  ///< that the row names; the world must name_partitions() before
  std::optional<Millis> due_in{};           ///< set: scheduled, so far from now; negative: due since then
  std::optional<std::int64_t> id{};
};

struct RowState {
  std::string status;
  std::optional<std::int32_t> partition{};
  std::optional<std::int64_t> offset{};
  std::string last_error{};
  std::int32_t generation = 0;
  Uuid msg_id{};
};

// --- asking the source and waiting for its answer --------------------------------------------------------

template <class T, class World, class Call>
Result<T> ask(World& world, Call call) {
  std::optional<Result<T>> answer;
  bool inside = true;
  call([&](Result<T> result) {
    CHECK_MESSAGE(!inside, "an answer never comes from inside the call");
    REQUIRE_MESSAGE(!answer, "each call is answered once");
    answer = std::move(result);
  });
  inside = false;
  world.pump([&] { return answer.has_value(); });
  return std::move(*answer);
}

template <class T, class World, class Call>
T asked(World& world, Call call) {
  Result<T> answer = ask<T>(world, std::move(call));
  if (!answer) FAIL(answer.error().text());
  if constexpr (!std::is_void_v<T>) return std::move(*answer);
}

inline std::vector<relay::Shard> all_shards() {
  std::vector<relay::Shard> shards;
  for (std::int16_t n = 0; n < relay::shard_count; ++n) shards.emplace_back(n);
  return shards;
}

inline relay::ClaimRequest request_for(relay::Look look) {
  relay::ClaimRequest request;
  request.look = look;
  request.shards = all_shards();
  return request;
}

template <class World>
relay::Batch claim(World& world, relay::ClaimRequest request) {
  return asked<relay::Batch>(world,
                             [&](auto done) { world.source().claim(std::move(request), std::move(done)); });
}
template <class World>
relay::Batch claim(World& world, relay::Look look = relay::Look::flat) {
  return claim(world, request_for(look));
}

inline std::vector<std::int64_t> ids_of(const std::vector<relay::Message>& rows) {
  std::vector<std::int64_t> ids;
  ids.reserve(rows.size());
  for (const relay::Message& m : rows) ids.push_back(m.id.value);
  return ids;
}
inline std::set<std::int64_t> id_set(const std::vector<relay::Message>& rows) {
  const auto ids = ids_of(rows);
  return {ids.begin(), ids.end()};
}

template <class World>
relay::LeaseReply lease(World& world, const std::string& owner, Millis ttl = Millis{60'000}) {
  return asked<relay::LeaseReply>(world, [&](auto done) {
    world.source().lease({.owner = owner, .lanes = 8, .ttl = ttl, .sent_per_s = 1.5}, std::move(done));
  });
}

inline relay::Lease lease_of(const relay::LeaseReply& reply, relay::Shard shard) {
  const relay::LaneId lane = relay::lane_of(shard, 8);
  for (const relay::Lease& held : reply.held) {
    if (held.lane == lane) return held;
  }
  FAIL("no lease of lane " << lane.value);
  return {};
}

inline std::vector<relay::SentRow> sent(const std::vector<relay::Message>& rows,
                                        const relay::LeaseReply& leases, std::int64_t first_offset = 100) {
  std::vector<relay::SentRow> out;
  out.reserve(rows.size());
  for (const relay::Message& m : rows) {
    out.push_back({m.id, m.msg_id, m.address, m.generation, lease_of(leases, m.shard), relay::Partition{3},
                   relay::Offset{first_offset++}});
  }
  return out;
}

template <class World>
relay::MarkReply mark(World& world, std::vector<relay::SentRow> rows,
                      relay::AfterSent after = relay::AfterSent::mark) {
  return asked<relay::MarkReply>(
      world, [&](auto done) { world.source().mark(std::move(rows), after, std::move(done)); });
}

template <class World>
relay::RowName name_of(World& world, std::int64_t id) {
  return {relay::RowId{id}, world.row(id)->msg_id};
}

template <class World>
void set_held(World& world, const std::vector<std::int64_t>& ids) {
  std::vector<relay::RowName> rows;
  rows.reserve(ids.size());
  for (const std::int64_t id : ids) rows.push_back(name_of(world, id));
  asked<void>(world, [&](auto done) { world.source().set_held(std::move(rows), std::move(done)); });
}
template <class World>
void hold(World& world, const relay::HoldTarget& target, const std::string& reason = "kafka: because") {
  asked<void>(world, [&](auto done) { world.source().hold(target, reason, std::move(done)); });
}
template <class World>
relay::Release release(World& world, const relay::HoldTarget& target) {
  return asked<relay::Release>(world, [&](auto done) { world.source().release(target, std::move(done)); });
}
template <class World>
void bury(World& world, const relay::DeadRow& row) {
  asked<void>(world, [&](auto done) { world.source().bury(row, std::move(done)); });
}
template <class World>
std::int32_t pin(World& world, const std::string& topic, std::int32_t current) {
  return asked<std::int32_t>(world, [&](auto done) { world.source().pin(topic, current, std::move(done)); });
}

template <class World>
std::string status(World& world, std::int64_t id) {
  const auto row = world.row(id);
  return row ? row->status : "no row";
}

inline const relay::HoldTarget key_hold{relay::HoldScope::key, "payment.created", "account-1"};
inline const relay::HoldTarget topic_hold{relay::HoldScope::topic, "payment.created", ""};

}  // namespace outbox::test

#include "tests/contract/source_claim_laws.hpp"
#include "tests/contract/source_hold_laws.hpp"
#include "tests/contract/source_lease_laws.hpp"
#include "tests/contract/source_ledger_laws.hpp"
#include "tests/contract/source_mark_laws.hpp"

/// Runs every law of the port on `World`. Stands outside any namespace, after `using namespace outbox::test`.
#define OUTBOX_SOURCE_CONTRACT(World)                         \
  TEST_CASE_TEMPLATE_INVOKE(source_unsent, World);            \
  TEST_CASE_TEMPLATE_INVOKE(source_except, World);            \
  TEST_CASE_TEMPLATE_INVOKE(source_floors, World);            \
  TEST_CASE_TEMPLATE_INVOKE(source_order, World);             \
  TEST_CASE_TEMPLATE_INVOKE(source_shards, World);            \
  TEST_CASE_TEMPLATE_INVOKE(source_rows_max, World);          \
  TEST_CASE_TEMPLATE_INVOKE(source_bytes_max, World);         \
  TEST_CASE_TEMPLATE_INVOKE(source_one_row, World);           \
  TEST_CASE_TEMPLATE_INVOKE(source_fair, World);              \
  TEST_CASE_TEMPLATE_INVOKE(source_due, World);               \
  TEST_CASE_TEMPLATE_INVOKE(source_not_yet_due, World);       \
  TEST_CASE_TEMPLATE_INVOKE(source_large_due, World);         \
  TEST_CASE_TEMPLATE_INVOKE(source_due_cut, World);           \
  TEST_CASE_TEMPLATE_INVOKE(source_due_locked, World);        \
  TEST_CASE_TEMPLATE_INVOKE(source_content, World);           \
  TEST_CASE_TEMPLATE_INVOKE(source_partition, World);         \
  TEST_CASE_TEMPLATE_INVOKE(source_held_flag, World);         \
  TEST_CASE_TEMPLATE_INVOKE(source_held_rows, World);         \
  TEST_CASE_TEMPLATE_INVOKE(source_set_held, World);          \
  TEST_CASE_TEMPLATE_INVOKE(source_release, World);           \
  TEST_CASE_TEMPLATE_INVOKE(source_release_operators, World); \
  TEST_CASE_TEMPLATE_INVOKE(source_reasons, World);           \
  TEST_CASE_TEMPLATE_INVOKE(source_held_topics, World);       \
  TEST_CASE_TEMPLATE_INVOKE(source_bury, World);              \
  TEST_CASE_TEMPLATE_INVOKE(source_bury_lost, World);         \
  TEST_CASE_TEMPLATE_INVOKE(source_bury_retried, World);      \
  TEST_CASE_TEMPLATE_INVOKE(source_mark, World);              \
  TEST_CASE_TEMPLATE_INVOKE(source_mark_again, World);        \
  TEST_CASE_TEMPLATE_INVOKE(source_mark_moved, World);        \
  TEST_CASE_TEMPLATE_INVOKE(source_mark_address, World);      \
  TEST_CASE_TEMPLATE_INVOKE(source_mark_held, World);         \
  TEST_CASE_TEMPLATE_INVOKE(source_cancelled, World);         \
  TEST_CASE_TEMPLATE_INVOKE(source_lane_lost, World);         \
  TEST_CASE_TEMPLATE_INVOKE(source_gone, World);              \
  TEST_CASE_TEMPLATE_INVOKE(source_mixed, World);             \
  TEST_CASE_TEMPLATE_INVOKE(source_erase, World);             \
  TEST_CASE_TEMPLATE_INVOKE(source_mark_replaced, World);     \
  TEST_CASE_TEMPLATE_INVOKE(source_write_replaced, World);    \
  TEST_CASE_TEMPLATE_INVOKE(source_except_replaced, World);   \
  TEST_CASE_TEMPLATE_INVOKE(source_equal_ids, World);         \
  TEST_CASE_TEMPLATE_INVOKE(source_mark_lane, World);         \
  TEST_CASE_TEMPLATE_INVOKE(source_lease, World);             \
  TEST_CASE_TEMPLATE_INVOKE(source_lease_waits, World);       \
  TEST_CASE_TEMPLATE_INVOKE(source_lease_shares, World);      \
  TEST_CASE_TEMPLATE_INVOKE(source_give_back, World);         \
  TEST_CASE_TEMPLATE_INVOKE(source_give_back_late, World);    \
  TEST_CASE_TEMPLATE_INVOKE(source_leave, World);             \
  TEST_CASE_TEMPLATE_INVOKE(source_delivery, World);          \
  TEST_CASE_TEMPLATE_INVOKE(source_lanes_dealt_anew, World);  \
  TEST_CASE_TEMPLATE_INVOKE(source_paused, World);            \
  TEST_CASE_TEMPLATE_INVOKE(source_pin, World);               \
  TEST_CASE_TEMPLATE_INVOKE(source_asleep, World);            \
  TEST_CASE_TEMPLATE_INVOKE(source_ledger, World);            \
  TEST_CASE_TEMPLATE_INVOKE(source_stop, World)
