#include "relay/core/claim/due_order.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace outbox::relay {
namespace {

bool before(const Message& due, const Message& row) {
  return *due.available_at < row.created_at;
}

bool is_cut(const Batch& batch, Shard shard) {
  if (!batch.more) return false;
  return batch.cut.empty() || std::find(batch.cut.begin(), batch.cut.end(), shard) != batch.cut.end();
}

}  // namespace

std::vector<Message> in_publishing_order(Batch& batch) {
  std::vector<Message> rows = std::move(batch.rows);
  std::vector<Message> due = std::move(batch.due);
  batch.rows.clear();
  batch.due.clear();
  if (due.empty()) return rows;
  std::stable_sort(due.begin(), due.end(),
                   [](const Message& a, const Message& b) { return a.shard < b.shard; });
  std::vector<Message> out;
  out.reserve(rows.size() + due.size());
  auto row = rows.begin();
  for (const Message& d : due) {
    while (row != rows.end() && row->shard < d.shard) out.push_back(*row++);
    while (row != rows.end() && row->shard == d.shard && !before(d, *row)) out.push_back(*row++);
    const bool shard_ended = row == rows.end() || row->shard != d.shard;
    if (shard_ended && is_cut(batch, d.shard)) continue;
    out.push_back(d);
  }
  std::copy(row, rows.end(), std::back_inserter(out));
  return out;
}

}  // namespace outbox::relay
