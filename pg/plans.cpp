#include "pg/plans.hpp"

#include <algorithm>

namespace outbox::pg {

std::string plan_name(PlanId id) {
  return "outbox_" + std::to_string(id);
}

std::optional<Plans::Use> Plans::use(const std::shared_ptr<const std::string>& sql, const Params& params,
                                     std::uint64_t segment) {
  const Oid* types = params.types();
  const auto count = static_cast<std::size_t>(params.count());
  // A relay has a dozen statements: looking through them costs less than hashing.
  const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const Plan& p) {
    return p.sql == sql && std::equal(p.types.begin(), p.types.end(), types, types + count);
  });
  if (found != plans_.end()) {
    return found->is_made || found->made_by == segment ? std::optional(Use{found->id, false}) : std::nullopt;
  }
  if (plans_.size() >= plans_max) return std::nullopt;
  plans_.push_back({++last_, sql, {types, types + count}, segment});
  return Use{last_, true};
}

void Plans::made(PlanId id) {
  const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const Plan& p) { return p.id == id; });
  if (found != plans_.end()) found->is_made = true;
}

void Plans::forget(PlanId id) {
  std::erase_if(plans_, [&](const Plan& p) { return p.id == id; });
}

}  // namespace outbox::pg
