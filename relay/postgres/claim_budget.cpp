#include "relay/postgres/claim_budget.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace outbox::relay {
namespace {

// Due rows are rare: until some are seen they have a small part, then half.
constexpr std::int64_t due_part_quiet = 16;
constexpr std::int64_t due_part_busy = 2;

std::int64_t share_least(const ClaimRequest& request) {
  const std::int64_t rows_part = request.bytes_max - request.bytes_max / due_part_busy;
  return request.look == Look::flat ? rows_part
                                    : rows_part / std::max<std::int64_t>(1, std::ssize(request.shards));
}

}  // namespace

ClaimShares ClaimBudget::shares(const ClaimRequest& request) {
  OUTBOX_CHECK(request.rows_max > 0 && request.bytes_max > 0, "a claim asks for something");
  ClaimShares out;
  out.due_rows = request.rows_max;
  out.due_bytes = request.bytes_max / (due_expected_ ? due_part_busy : due_part_quiet);
  out.due_large_bytes = std::exchange(due_large_, 0);
  const std::int64_t rest = request.bytes_max - std::max(out.due_bytes, out.due_large_bytes);
  if (request.look == Look::by_shard) {
    spread(request, std::max<std::int64_t>(rest, 0), out);
  } else {
    out.rows = request.rows_max;
    out.bytes = std::max<std::int64_t>(rest, 0);
    out.large_bytes = out.due_large_bytes > 0 ? 0 : std::exchange(flat_large_, 0);
  }
  if (out.large_bytes > out.bytes) {
    out.due_bytes = std::clamp<std::int64_t>(request.bytes_max - out.large_bytes, 0, out.due_bytes);
  }
  return out;
}

void ClaimBudget::spread(const ClaimRequest& request, std::int64_t bytes, ClaimShares& out) {
  const auto all = std::ssize(request.shards);
  if (all == 0) return;
  std::int64_t largest = 0;
  for (const Shard shard : request.shards) {
    const auto known = large_.find(shard.value);
    if (known != large_.end()) largest = std::max(largest, known->second);
  }
  const std::int64_t fit = largest == 0 ? all : std::max<std::int64_t>(1, bytes / largest);
  const std::int64_t count = std::min<std::int64_t>({all, fit, request.rows_max});

  std::int16_t& turn = turn_[static_cast<std::size_t>(request.shards.front().value)];
  auto at = std::ranges::lower_bound(request.shards, Shard{turn});
  for (std::int64_t i = 0; i < count; ++i, ++at) {
    if (at == request.shards.end()) at = request.shards.begin();
    out.shards.push_back(at->value);
  }
  turn = static_cast<std::int16_t>(out.shards.back() + 1);
  out.all_shards = count == all;
  out.rows = std::max(1, request.rows_max / static_cast<std::int32_t>(count));
  out.bytes = bytes / count;
  // Beside a large due row nothing else may be large, or both together would exceed the budget.
  if (count == 1 && largest > bytes && out.due_large_bytes == 0) {
    out.large_shard = out.shards.front();
    out.large_bytes = largest;
  }
  std::ranges::sort(out.shards);
}

void ClaimBudget::learn(const ClaimRequest& request, const ClaimShares& shares, const ClaimSeen& seen) {
  due_expected_ = seen.due.has_value();
  if (seen.due && seen.due->bytes > request.bytes_max / due_part_busy) due_large_ = seen.due->bytes;
  for (const std::int16_t shard : shares.shards) large_.erase(shard);
  for (const SeenRow& row : seen.rows) {
    if (row.bytes <= share_least(request)) continue;
    if (request.look == Look::flat) {
      flat_large_ = std::max(flat_large_, row.bytes);
    } else {
      std::int64_t& largest = large_[row.shard.value];
      largest = std::max(largest, row.bytes);
    }
  }
}

}  // namespace outbox::relay
