#include "relay/postgres/claim_budget.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <set>

using namespace outbox::relay;

namespace {

ClaimRequest request_of(Look look, int shards, std::int64_t bytes_max) {
  ClaimRequest request;
  request.look = look;
  for (int n = 0; n < shards; ++n) request.shards.emplace_back(static_cast<std::int16_t>(n * 8));
  request.bytes_max = bytes_max;
  return request;
}

// What a claim can bring at most: every share used up, or its first row as large as is allowed.
std::int64_t most_bytes(const ClaimRequest& request, const ClaimShares& shares) {
  const auto looks = request.look == Look::flat ? std::size_t{1} : shares.shards.size();
  const auto rows = std::max(static_cast<std::int64_t>(looks) * shares.bytes, shares.large_bytes);
  return rows + std::max(shares.due_bytes, shares.due_large_bytes);
}

}  // namespace

TEST_CASE("shares never exceed the budget, unless one row does that alone") {
  for (const Look look : {Look::flat, Look::by_shard}) {
    ClaimBudget budget;
    const auto request = request_of(look, 8, 8000);
    for (const std::int64_t rows : {10, 600, 900, 3000, 7000, 9000, 20'000}) {
      for (const std::int64_t due : {0, 10, 3000, 5000, 20'000}) {
        ClaimSeen seen{.rows = {{Shard{8}, rows}}};
        if (due > 0) seen.due = SeenRow{Shard{0}, due};
        auto shares = budget.shares(request);
        budget.learn(request, shares, seen);
        shares = budget.shares(request);
        CHECK(most_bytes(request, shares) <= std::max({request.bytes_max, rows, due}));
      }
    }
  }
}

TEST_CASE("where rows are too large for an equal share, fewer shards are probed, each in its turn") {
  ClaimBudget budget;
  const auto request = request_of(Look::by_shard, 8, 8 << 20);
  CHECK(budget.shares(request).shards.size() == 8);
  budget.learn(request, budget.shares(request), {.rows = {{Shard{16}, 3 << 20}}});
  std::set<std::int16_t> probed;
  for (int n = 0; n < 4; ++n) {
    const auto shares = budget.shares(request);
    CHECK(shares.shards.size() == 2);
    CHECK(shares.bytes >= 3 << 20);
    CHECK_FALSE(shares.all_shards);
    probed.insert(shares.shards.begin(), shares.shards.end());
    budget.learn(request, shares, {.rows = {{Shard{16}, 3 << 20}}});
  }
  CHECK(probed.size() == 8);
}

TEST_CASE("a shard is forgotten as large once it brings small rows") {
  ClaimBudget budget;
  const auto request = request_of(Look::by_shard, 2, 1000);
  budget.learn(request, budget.shares(request), {.rows = {{Shard{0}, 900}}});
  auto shares = budget.shares(request);
  CHECK(shares.shards.size() == 1);
  while (shares.shards.front() != 0) shares = budget.shares(request);
  budget.learn(request, shares, {.rows = {{Shard{0}, 10}}});
  CHECK(budget.shares(request).all_shards);
}

TEST_CASE("a claim of fewer rows than shards probes no more shards than rows") {
  ClaimBudget budget;
  auto request = request_of(Look::by_shard, 8, 1000);
  request.rows_max = 3;
  const auto shares = budget.shares(request);
  CHECK(shares.shards.size() == 3);
  CHECK(shares.rows == 1);
}
