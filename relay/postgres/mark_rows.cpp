#include "relay/postgres/mark_rows.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/check.hpp"

namespace outbox::relay {
namespace {

constexpr auto same_lease = [](const Lease& a, const Lease& b) {
  return a.lane == b.lane && a.epoch == b.epoch;
};

/// The part of the parameters that mark and erase share.
pg::Params address_params(const std::vector<SentRow>& rows, const LeaseList& leases) {
  std::vector<pg::Tid> addresses;
  std::vector<std::int64_t> ids;
  std::vector<Uuid> msg_ids;
  std::vector<std::int32_t> generations;
  std::vector<std::int16_t> places;
  addresses.reserve(rows.size());
  ids.reserve(rows.size());
  msg_ids.reserve(rows.size());
  generations.reserve(rows.size());
  places.reserve(rows.size());
  for (const SentRow& row : rows) {
    addresses.push_back({row.address.block, row.address.line});
    ids.push_back(row.id.value);
    msg_ids.push_back(row.msg_id);
    generations.push_back(row.generation);
    places.push_back(leases.place(row.lease));
  }
  pg::Params params;
  params.tids(addresses).i64s(ids).uuids(msg_ids).i32s(generations).i16s(places);
  return params;
}

void add_positions(const std::vector<SentRow>& rows, pg::Params& params) {
  std::vector<std::int32_t> partitions;
  std::vector<std::int64_t> offsets;
  for (const SentRow& row : rows) {
    partitions.push_back(row.partition.value);
    offsets.push_back(row.offset.value);
  }
  params.i32s(partitions).i64s(offsets);
}

struct Found {
  RowAddress address;
  Shard shard;
  std::string_view status;
  std::int32_t generation = 0;
  bool at_same_position = false;
};

Found read_found(const pg::Rows& rows, int row, const SentRow& sent) {
  const pg::Tid tid = rows.tid(row, 2);
  Found found;
  found.address = {static_cast<std::uint32_t>(rows.integer(row, 1)), tid.block, tid.offset};
  found.status = rows.text(row, 3);
  found.generation = static_cast<std::int32_t>(rows.integer(row, 4));
  found.at_same_position = !rows.is_null(row, 5) && !rows.is_null(row, 6) &&
                           rows.integer(row, 5) == sent.partition.value &&
                           rows.integer(row, 6) == sent.offset.value;
  found.shard = Shard{static_cast<std::int16_t>(rows.integer(row, 8))};
  return found;
}

// Without a row, a mark finds that somebody deleted it; an erase finds what it wanted, by itself or by an
// earlier try.
MarkOutcome outcome_of_missing(AfterSent after) {
  return after == AfterSent::erase ? MarkOutcome::marked : MarkOutcome::gone;
}

// nullopt: the row still has to be written.
std::optional<MarkOutcome> outcome(const Found& found, const SentRow& sent, bool lease_stands) {
  if (found.generation != sent.generation) return MarkOutcome::gone;
  if (sent.of && lane_of(found.shard, sent.of->lanes) != sent.of->lane) return MarkOutcome::replaced;
  if (found.status == "SENT" && found.at_same_position) return MarkOutcome::marked;
  if (found.status == "CANCELLED") return std::nullopt;
  if (!lease_stands) return MarkOutcome::lane_lost;
  if (found.status == "SENT") return MarkOutcome::marked;  // sent twice: the first record stands
  if (found.status == "PENDING" || found.status == "HELD") return std::nullopt;
  return MarkOutcome::gone;  // an operator has decided about it meanwhile
}

// Several rows may have one id, and one of them is meant. Even the msg_id may come twice, where somebody copied a
// row by hand: then the one that waits is.
std::multimap<RowName, int> rows_by_name(const pg::Rows& rows) {
  std::multimap<RowName, int> out;
  for (int row = 0; row < rows.size(); ++row)
    out.emplace(RowName{RowId{rows.integer(row, 0)}, rows.uuid(row, 7)}, row);
  return out;
}

struct Judged {
  std::optional<MarkOutcome> outcome;  // nullopt: the row still has to be written
  Found row;
};

Judged judge(const SentRow& sent, AfterSent after, bool lease_stands,
             const std::multimap<RowName, int>& by_name, const pg::Rows& found) {
  const auto [begin, end] = by_name.equal_range({sent.id, sent.msg_id});
  if (begin == end) {
    const auto same_id = by_name.lower_bound({sent.id, Uuid{}});
    const bool replaced = same_id != by_name.end() && same_id->first.id == sent.id;
    return {replaced ? MarkOutcome::replaced : outcome_of_missing(after), {}};
  }
  Judged best;
  for (auto at = begin; at != end; ++at) {
    const Found now = read_found(found, at->second, sent);
    const auto decided = outcome(now, sent, lease_stands);
    if (decided == MarkOutcome::marked && now.at_same_position) return {decided, now};
    if (at == begin || (best.outcome && !decided)) best = {decided, now};
  }
  return best;
}

}  // namespace

LeaseList::LeaseList(const std::vector<SentRow>& rows) {
  for (const SentRow& row : rows) {
    const auto same = [&](const Lease& l) { return same_lease(l, row.lease); };
    if (std::ranges::none_of(leases_, same)) leases_.push_back(row.lease);
  }
}

std::int16_t LeaseList::place(const Lease& lease) const {
  const auto at = std::ranges::find_if(leases_, [&](const Lease& l) { return same_lease(l, lease); });
  OUTBOX_CHECK(at != leases_.end(), "every row's lease is in the list of its mark");
  return static_cast<std::int16_t>(at - leases_.begin() + 1);
}

void LeaseList::add_to(pg::Params& params) const {
  std::vector<std::int16_t> lanes;
  std::vector<std::int64_t> epochs;
  for (const Lease& lease : leases_) {
    lanes.push_back(lease.lane.value);
    epochs.push_back(lease.epoch.value);
  }
  params.i16s(lanes).i64s(epochs);
}

std::map<std::uint32_t, std::vector<SentRow>> by_partition(const std::vector<SentRow>& rows) {
  struct Place {
    std::uint64_t address = 0;  // small to move while sorting, unlike a row
    const SentRow* row = nullptr;
  };
  std::map<std::uint32_t, std::vector<Place>> places;
  for (const SentRow& row : rows)
    places[row.address.table].push_back({std::uint64_t{row.address.block} << 16 | row.address.line, &row});
  std::map<std::uint32_t, std::vector<SentRow>> groups;
  for (auto& [table, of] : places) {
    std::ranges::sort(of, {}, &Place::address);
    std::vector<SentRow>& group = groups[table];
    group.reserve(of.size());
    for (const Place& place : of) group.push_back(*place.row);
  }
  return groups;
}

pg::Params mark_params(const std::vector<SentRow>& rows, const LeaseList& leases, std::string_view source) {
  pg::Params params = address_params(rows, leases);
  add_positions(rows, params);
  params.text(source);
  leases.add_to(params);
  return params;
}

pg::Params erase_params(const std::vector<SentRow>& rows, const LeaseList& leases, std::string_view source) {
  pg::Params params = address_params(rows, leases);
  params.text(source);
  leases.add_to(params);
  return params;
}

pg::Params cancelled_params(const std::vector<SentRow>& rows) {
  std::vector<std::int64_t> ids;
  std::vector<Uuid> msg_ids;
  std::vector<std::int32_t> generations;
  for (const SentRow& row : rows) {
    ids.push_back(row.id.value);
    msg_ids.push_back(row.msg_id);
    generations.push_back(row.generation);
  }
  pg::Params params;
  params.i64s(ids).uuids(msg_ids).i32s(generations);
  add_positions(rows, params);
  return params;
}

Explained explain(const std::vector<SentRow>& rows, AfterSent after, const LeaseList& leases,
                  const pg::Rows& found, const pg::Rows& standing) {
  std::set<std::int64_t> places_standing;
  for (int row = 0; row < standing.size(); ++row) places_standing.insert(standing.integer(row, 0));
  const auto by_name = rows_by_name(found);
  Explained out;
  for (const SentRow& sent : rows) {
    const Judged now = judge(sent, after, places_standing.contains(leases.place(sent.lease)), by_name, found);
    if (now.outcome) {
      if (*now.outcome != MarkOutcome::marked) out.exceptions.push_back({sent.id, sent.msg_id, *now.outcome});
      continue;
    }
    SentRow& again = (now.row.status == "CANCELLED" ? out.cancelled : out.moved).emplace_back(sent);
    again.address = now.row.address;
  }
  return out;
}

}  // namespace outbox::relay
