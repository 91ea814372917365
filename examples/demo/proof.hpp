#pragma once
// What must be true when all is done. Everything is read afresh from the two databases and from Kafka;
// nothing that the demo counted while it ran is taken on trust.

#include <string>
#include <vector>

#include "pg/session.hpp"
#include "tests/support/kafka.hpp"

namespace demo {

struct Law {
  std::string text;  ///< what must hold
  bool holds = false;
  std::string figures;  ///< what was found
};

struct Evidence {
  outbox::pg::Session& bank;
  outbox::pg::Session& ledger;
  const std::vector<outbox::test::KafkaRecord>& records;
};

[[nodiscard]] std::vector<Law> prove(const Evidence& evidence);

}  // namespace demo
