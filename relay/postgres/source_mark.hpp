#pragma once
// One mark: an UPDATE or DELETE per partition in one durable transaction; rows that it did not find are read
// again by id and explained one by one, and those that only moved are marked where they lie now.

#include <memory>

#include "relay/postgres/source_link.hpp"

namespace outbox::relay {

void start_mark(const std::shared_ptr<SourceLink>& link, std::vector<SentRow> rows, AfterSent after,
                Done<MarkReply> done);

}  // namespace outbox::relay
