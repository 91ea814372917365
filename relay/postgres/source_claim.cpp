#include "relay/postgres/source_claim.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "relay/postgres/claim_rows.hpp"

namespace outbox::relay {
namespace {

constexpr std::int64_t no_floor = std::numeric_limits<std::int64_t>::min();

std::int64_t bits_of(const std::vector<Shard>& shards) {
  std::uint64_t bits = 0;
  for (const Shard shard : shards) bits |= std::uint64_t{1} << static_cast<unsigned>(shard.value);
  return static_cast<std::int64_t>(bits);
}

struct ShardRanges {
  std::vector<std::int16_t> first;
  std::vector<std::int16_t> last;
};

// `shards` ascending.
ShardRanges ranges_of(const std::vector<Shard>& shards) {
  ShardRanges out;
  for (const Shard shard : shards) {
    if (!out.last.empty() && shard.value == out.last.back() + 1) {
      out.last.back() = shard.value;
    } else {
      out.first.push_back(shard.value);
      out.last.push_back(shard.value);
    }
  }
  return out;
}

class ClaimCall : public std::enable_shared_from_this<ClaimCall> {
 public:
  ClaimCall(std::shared_ptr<SourceLink> link, std::shared_ptr<ClaimBudget> budget, ClaimRequest request,
            Done<Batch> done)
      : link_(std::move(link)),
        budget_(std::move(budget)),
        request_(std::move(request)),
        done_(std::move(done)) {
    std::ranges::sort(request_.shards);
    for (const RowName& row : request_.except) {
      except_ids_.push_back(row.id.value);
      except_msg_ids_.push_back(row.msg_id);
    }
  }

  void look() {
    shares_ = budget_->shares(request_);
    const SourceSql& sql = *link_->sql();
    link_->run(
        Work::claim,
        {first(sql), {sql.claim_due, with_except_msg_ids(due_params())}, {sql.claim_end, end_params()}},
        [self = shared_from_this()](auto results) { self->answered(std::move(results)); });
  }

 private:
  [[nodiscard]] pg::Statement first(const SourceSql& sql) const {
    if (request_.look == Look::by_shard) return {sql.claim_by_shard, with_except_msg_ids(by_shard_params())};
    if (!bounded()) return {sql.claim_flat, with_except_msg_ids(flat_params())};
    return {sql.claim_flat_above, with_except_msg_ids(flat_above_params())};
  }
  [[nodiscard]] std::int64_t floor_of(std::int16_t shard) const {
    if (request_.floors.empty()) return no_floor;
    const RowId floor = request_.floors[static_cast<std::size_t>(shard)];
    return floor == RowId{} ? no_floor : floor.value;
  }
  [[nodiscard]] bool bounded() const {
    return std::ranges::any_of(request_.floors, [](RowId floor) { return floor != RowId{}; });
  }
  template <class Shards>
  void add_floors(const Shards& shards, pg::Params& params) const {
    std::vector<std::int64_t> floors;
    floors.reserve(shards.size());
    for (const std::int16_t shard : shards) floors.push_back(floor_of(shard));
    params.i64s(floors);
  }
  [[nodiscard]] pg::Params flat_above_params() const {
    std::vector<std::int16_t> shards;
    shards.reserve(request_.shards.size());
    for (const Shard shard : request_.shards) shards.push_back(shard.value);
    pg::Params params;
    params.i16s(shards);
    add_floors(shards, params);
    params.i32(shares_.rows).i64(shares_.bytes).i64(shares_.large_bytes);
    add_except(params);
    params.i64(request_.releases);
    return params;
  }
  void add_except(pg::Params& params) const {
    if (except_ids_.empty()) {
      params.null();
    } else {
      params.i64s(except_ids_);
    }
    params.text(link_->source());
  }
  // The last parameter of each look: what names the rows of add_except() beside their ids.
  [[nodiscard]] pg::Params with_except_msg_ids(pg::Params params) const {
    params.uuids(except_msg_ids_);
    return params;
  }
  [[nodiscard]] pg::Params flat_params() const {
    pg::Params params;
    const ShardRanges ranges = ranges_of(request_.shards);
    params.i16s(ranges.first).i16s(ranges.last);
    params.i32(shares_.rows).i64(shares_.bytes).i64(shares_.large_bytes);
    add_except(params);
    return params;
  }
  [[nodiscard]] pg::Params by_shard_params() const {
    pg::Params params;
    params.i16s(shares_.shards).i32(shares_.rows).i64(shares_.bytes);
    params.i16(shares_.large_shard).i64(shares_.large_bytes);
    add_except(params);
    add_floors(shares_.shards, params);
    params.i64(request_.releases);
    return params;
  }
  [[nodiscard]] pg::Params due_params() const {
    pg::Params params;
    params.i64(bits_of(request_.shards))
        .i32(shares_.due_rows)
        .i64(shares_.due_bytes)
        .i64(shares_.due_large_bytes);
    add_except(params);
    return params;
  }
  [[nodiscard]] pg::Params end_params() const {
    pg::Params params;
    params.boolean(link_->options().barrier == Barrier::on).text(link_->source());
    return params;
  }

  void answered(Result<std::vector<pg::Rows>> results) {
    if (!results) return done_(failure(std::move(results.error())));
    Claimed claimed = read_claim({(*results)[0], (*results)[1], (*results)[2]}, request_, shares_);
    budget_->learn(request_, shares_, claimed.seen);
    const bool nothing = claimed.batch.rows.empty() && claimed.batch.due.empty();
    if (nothing && claimed.batch.more && looks_left_-- > 0) return look();
    claimed.batch.horizon.transaction_first = link_->transaction_first();
    done_(std::move(claimed.batch));
  }

  std::shared_ptr<SourceLink> link_;
  std::shared_ptr<ClaimBudget> budget_;
  ClaimRequest request_;
  Done<Batch> done_;
  std::vector<std::int64_t> except_ids_;
  std::vector<Uuid> except_msg_ids_;
  ClaimShares shares_;
  int looks_left_ = shard_count + 1;  // in rotation, a look at each shard alone at worst
};

}  // namespace

void start_claim(const std::shared_ptr<SourceLink>& link, const std::shared_ptr<ClaimBudget>& budget,
                 ClaimRequest request, Done<Batch> done) {
  if (request.shards.empty()) return link->post([done = std::move(done)] { done(Batch{}); });
  std::make_shared<ClaimCall>(link, budget, std::move(request), std::move(done))->look();
}

}  // namespace outbox::relay
