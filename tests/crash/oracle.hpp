#pragma once
// What must hold whenever nothing is on the way, whatever was killed before. Each function returns the laws
// that do not hold, one a line with the number of breaches; empty: all do. They only read.

#include <string>
#include <vector>

#include "pg/session.hpp"
#include "tests/support/kafka.hpp"

namespace outbox::test {

/// Of the bank (bank.hpp), its outbox, and the ledger that tests/consumer/ledger_consumer keeps in the same
/// database.
[[nodiscard]] std::string broken_money_laws(pg::Session& session);

/// Of an outbox and its one topic, read as a whole.
[[nodiscard]] std::string broken_topic_laws(pg::Session& session, const std::vector<KafkaRecord>& records);

}  // namespace outbox::test
