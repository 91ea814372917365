#include "relay/postgres/claim_rows.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "relay/postgres/text_array.hpp"

namespace outbox::relay {
namespace {

enum Column : int {
  address_table,
  address,
  id,
  shard,
  generation,
  msg_id,
  created_at,
  topic,
  msg_key,
  partition,
  bytes,
  fits,
  held,
  headers,
  body,
  unused,
  available_at,
  locked
};

enum class Scheduled { no, yes };

// All headers of a result in one piece of memory that never moves: messages hold spans of it.
class HeaderArena {
 public:
  explicit HeaderArena(const pg::Rows& rows) : headers_(std::make_shared<std::vector<Header>>()) {
    std::size_t total = 0;
    for (int row = 0; row < rows.size(); ++row) {
      if (!rows.is_null(row, headers))
        total += static_cast<std::size_t>(TextArray(rows.text(row, headers)).size());
    }
    headers_->reserve(total / 2);
  }
  std::span<const Header> read(std::string_view binary) {
    TextArray array(binary);
    const std::size_t first = headers_->size();
    for (std::int32_t pair = 0; pair < array.size() / 2; ++pair) {
      const std::string_view name = array.next().value_or("");
      headers_->push_back({name, array.next()});
    }
    return std::span(*headers_).subspan(first);
  }
  [[nodiscard]] bool empty() const { return headers_->empty(); }
  [[nodiscard]] std::shared_ptr<const void> memory() const { return headers_; }

 private:
  std::shared_ptr<std::vector<Header>> headers_;
};

Message read_message(const pg::Rows& rows, int row, Scheduled scheduled, HeaderArena& arena) {
  Message m;
  const pg::Tid tid = rows.tid(row, address);
  m.id = RowId{rows.integer(row, id)};
  m.shard = Shard{static_cast<std::int16_t>(rows.integer(row, shard))};
  m.address = {static_cast<std::uint32_t>(rows.integer(row, address_table)), tid.block, tid.offset};
  m.msg_id = rows.uuid(row, msg_id);
  m.topic = rows.text(row, topic);
  m.key = rows.text_or_null(row, msg_key);
  if (!rows.is_null(row, partition))
    m.partition = Partition{static_cast<std::int32_t>(rows.integer(row, partition))};
  m.body = rows.text_or_null(row, body);
  if (!rows.is_null(row, headers)) m.headers = arena.read(rows.text(row, headers));
  m.created_at = rows.timestamptz(row, created_at);
  if (scheduled == Scheduled::yes) {
    m.available_at = rows.timestamptz(row, available_at);
    m.locked = rows.boolean(row, locked) ? Locked::yes : Locked::no;
  }
  m.generation = static_cast<std::int32_t>(rows.integer(row, generation));
  m.held = rows.boolean(row, held) ? Held::yes : Held::no;
  return m;
}

void note(std::vector<SeenRow>& seen, SeenRow row) {
  if (seen.empty() || seen.back().shard != row.shard) {
    seen.push_back(row);
  } else {
    seen.back().bytes = std::max(seen.back().bytes, row.bytes);
  }
}

struct Read {
  std::vector<Message> messages;
  std::vector<SeenRow> seen;  // the largest of each run of rows of one shard
};

Read read_rows(const pg::Rows& rows, Scheduled scheduled, Batch& batch) {
  Read out;
  if (rows.empty()) return out;
  HeaderArena arena(rows);
  out.messages.reserve(static_cast<std::size_t>(rows.size()));
  for (int row = 0; row < rows.size(); ++row) {
    note(out.seen, {Shard{static_cast<std::int16_t>(rows.integer(row, shard))}, rows.integer(row, bytes)});
    if (rows.boolean(row, fits)) out.messages.push_back(read_message(rows, row, scheduled, arena));
  }
  batch.memory.push_back(rows.memory());
  if (!arena.empty()) batch.memory.push_back(arena.memory());
  return out;
}

// Under by_shard a shard may hold more where it was not probed, where its rows reached their limit, or a row
// was too large.
std::set<Shard> cut_of_shards(const pg::Rows& rows, const ClaimRequest& request, const ClaimShares& shares) {
  std::set<Shard> cut(request.shards.begin(), request.shards.end());
  for (const std::int16_t probed : shares.shards) cut.erase(Shard{probed});
  std::map<std::int16_t, std::int32_t> brought;
  for (int row = 0; row < rows.size(); ++row) {
    const auto of = static_cast<std::int16_t>(rows.integer(row, shard));
    const bool at_limit = ++brought[of] >= shares.rows;
    if (at_limit || !rows.boolean(row, fits) || rows.integer(row, bytes) > shares.bytes)
      cut.insert(Shard{of});
  }
  return cut;
}

// A flat look ends in the middle of its last shard; the later ones were not looked at.
std::set<Shard> cut_of_flat(const pg::Rows& rows, const ClaimRequest& request, const ClaimShares& shares) {
  if (rows.empty()) return {};
  const int last = rows.size() - 1;
  const bool whole =
      rows.size() < shares.rows && rows.boolean(last, fits) && rows.integer(0, bytes) <= shares.bytes;
  if (whole) return {};
  const Shard from{static_cast<std::int16_t>(rows.integer(last, shard))};
  std::set<Shard> cut;
  for (const Shard wanted : request.shards) {
    if (wanted >= from) cut.insert(wanted);
  }
  return cut;
}

DuePlace place_of(const pg::Rows& due, int row) {
  return {due.timestamptz(row, available_at), RowId{due.integer(row, id)}};
}

// Behind which place due rows may be missing: they reached their limit, or a row was too large. Those that are
// locked come last, and where there are more of them than the limit, the last one is such a place too.
std::optional<DuePlace> cut_of_due(const pg::Rows& due, const ClaimShares& shares) {
  int free = 0;
  while (free < due.size() && !due.boolean(free, locked)) ++free;
  std::optional<DuePlace> cut;
  if (free > 0 &&
      (free >= shares.due_rows || !due.boolean(free - 1, fits) || due.integer(0, bytes) > shares.due_bytes))
    cut = place_of(due, free - 1);
  if (due.size() - free > shares.due_rows) {
    const DuePlace last = place_of(due, due.size() - 1);
    cut = cut ? std::min(*cut, last) : last;
  }
  return cut;
}

void put_in_order(std::vector<Message>& due, const std::optional<DuePlace>& cut) {
  const auto place = [](const Message& m) { return DuePlace{*m.available_at, m.id}; };
  if (cut) std::erase_if(due, [&](const Message& m) { return *cut < place(m); });
  if (!std::ranges::is_sorted(due, {}, place)) std::ranges::sort(due, {}, place);
}

// The plan brings rows in this order without a sort, but only an ORDER BY would promise it, and that one
// sorts.
void put_in_order(std::vector<Message>& rows) {
  const auto by_shard_and_id = [](const Message& a, const Message& b) {
    return std::tie(a.shard, a.id) < std::tie(b.shard, b.id);
  };
  if (!std::ranges::is_sorted(rows, by_shard_and_id)) std::ranges::sort(rows, by_shard_and_id);
}

}  // namespace

Claimed read_claim(const ClaimResults& results, const ClaimRequest& request, const ClaimShares& shares) {
  Claimed out;
  Read rows = read_rows(results.rows, Scheduled::no, out.batch);
  Read due = read_rows(results.due, Scheduled::yes, out.batch);
  const auto cut = request.look == Look::flat ? cut_of_flat(results.rows, request, shares)
                                              : cut_of_shards(results.rows, request, shares);
  out.batch.cut.assign(cut.begin(), cut.end());
  out.batch.due_cut = cut_of_due(results.due, shares);
  if (cut.empty() && out.batch.due_cut) out.batch.cut = {no_shard};
  out.batch.more = !out.batch.cut.empty();
  put_in_order(rows.messages);
  out.batch.rows = std::move(rows.messages);
  put_in_order(due.messages, out.batch.due_cut);
  out.batch.due = std::move(due.messages);
  if (!results.end.is_null(0, 0)) out.batch.next_due = results.end.timestamptz(0, 0);
  out.batch.horizon = {results.end.integer(0, 2), results.end.integer(0, 3), results.end.integer(0, 4)};
  out.seen.rows = std::move(rows.seen);
  for (const SeenRow& seen : due.seen) {
    if (!out.seen.due || out.seen.due->bytes < seen.bytes) out.seen.due = seen;
  }
  return out;
}

}  // namespace outbox::relay
