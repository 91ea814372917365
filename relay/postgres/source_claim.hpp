#pragma once
// One claim: rows, due rows and the durability barrier in one transaction. Where a row too large for its
// share stood in the way of all others, it looks again at once with the shares that let it through.

#include <memory>

#include "relay/postgres/claim_budget.hpp"
#include "relay/postgres/source_link.hpp"

namespace outbox::relay {

void start_claim(const std::shared_ptr<SourceLink>& link, const std::shared_ptr<ClaimBudget>& budget,
                 ClaimRequest request, Done<Batch> done);

}  // namespace outbox::relay
