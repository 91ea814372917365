#include "relay/core/claim/due_order.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

namespace outbox::relay {
namespace {

DuePlace place_of(const Message& m) {
  return {m.available_at.value_or(m.created_at), m.id};
}

bool is_cut(const Batch& batch, Shard shard) {
  if (!batch.more) return false;
  return batch.cut.empty() || std::find(batch.cut.begin(), batch.cut.end(), shard) != batch.cut.end();
}

std::vector<Message> merged(Batch& batch) {
  std::vector<Message> rows = std::exchange(batch.rows, {});
  std::vector<Message> due = std::exchange(batch.due, {});
  if (due.empty()) return rows;
  std::stable_sort(due.begin(), due.end(),
                   [](const Message& a, const Message& b) { return a.shard < b.shard; });
  std::vector<Message> out;
  out.reserve(rows.size() + due.size());
  auto row = rows.begin();
  for (const Message& d : due) {
    while (row != rows.end() && row->shard < d.shard) out.push_back(*row++);
    while (row != rows.end() && row->shard == d.shard && place_of(*row) < place_of(d)) out.push_back(*row++);
    const bool shard_ended = row == rows.end() || row->shard != d.shard;
    if (shard_ended && is_cut(batch, d.shard)) continue;
    out.push_back(d);
  }
  std::copy(row, rows.end(), std::back_inserter(out));
  return out;
}

}  // namespace

PublishingOrder in_publishing_order(Batch& batch) {
  std::vector<Message> all = merged(batch);
  const bool any_locked = std::ranges::any_of(all, [](const Message& m) { return m.locked == Locked::yes; });
  if (!batch.due_cut && !any_locked) return {std::move(all), {}};
  PublishingOrder out;
  std::set<std::pair<std::string_view, std::string_view>> waiting_keys;
  for (const Message& m : all) {
    const bool behind_the_cut = batch.due_cut && !m.available_at && *batch.due_cut < place_of(m);
    bool waits = m.locked == Locked::yes;
    if (m.key) {
      const std::pair key{m.topic, *m.key};
      waits = waits || behind_the_cut || waiting_keys.contains(key);
      if (waits) waiting_keys.insert(key);
    }
    (waits ? out.waiting : out.rows).push_back(m);
  }
  return out;
}

}  // namespace outbox::relay
