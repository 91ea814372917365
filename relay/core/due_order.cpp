#include "relay/core/due_order.hpp"

#include <algorithm>
#include <iterator>

namespace outbox::relay {
namespace {

bool before(const Message& due, const Message& row) { return *due.available_at < row.created_at; }

}  // namespace

std::vector<Message> in_publishing_order(std::vector<Message> rows, std::vector<Message> due, bool more) {
  if (due.empty()) return rows;
  std::stable_sort(due.begin(), due.end(),
                   [](const Message& a, const Message& b) { return a.shard < b.shard; });
  std::vector<Message> out;
  out.reserve(rows.size() + due.size());
  auto row = rows.begin();
  for (auto d = due.begin(); d != due.end(); ++d) {
    while (row != rows.end() && row->shard < d->shard) out.push_back(*row++);
    while (row != rows.end() && row->shard == d->shard && !before(*d, *row)) out.push_back(*row++);
    const bool shard_ended = row == rows.end() || row->shard != d->shard;
    if (shard_ended && more) continue;
    out.push_back(*d);
  }
  std::copy(row, rows.end(), std::back_inserter(out));
  return out;
}

}  // namespace outbox::relay
