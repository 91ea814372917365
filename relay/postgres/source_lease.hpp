#pragma once
// A request for leases. It goes out on the control connection; where that fails, or has not answered for a
// fifth of the ttl, it goes out again on one that marks, and the first answer counts. So a control connection
// that is silently dead costs neither the lanes nor, since the poll is not its business, a row's punctuality;
// its own deadline ends it. A request that is carried out twice renews twice. Private to relay/postgres.
// Thread: the loop's.

#include <memory>

#include "relay/ports/source.hpp"
#include "relay/postgres/source_link.hpp"

namespace outbox::relay {

/// Errors: where both failed, the later one's.
void start_lease(const std::shared_ptr<SourceLink>& link, LeaseRequest request, Done<LeaseReply> done);

}  // namespace outbox::relay
