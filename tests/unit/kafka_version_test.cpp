#include <doctest/doctest.h>

#include "relay/core/kafka/version.hpp"

using namespace outbox::relay;

TEST_CASE(
    "versions of librdkafka that break idempotence are refused, those that lack something are explained") {
  struct Case {
    std::int32_t version;
    const char* text;
    bool refused;
    std::size_t notes;
  };
  for (const auto& c : {Case{0x010902ff, "1.9.2", true, 1}, Case{0x020001ff, "2.0.1", true, 1},
                        Case{0x020002ff, "2.0.2", false, 2}, Case{0x020101ff, "2.1.1", false, 2},
                        Case{0x020200ff, "2.2.0", true, 3}, Case{0x020300ff, "2.3.0", true, 2},
                        Case{0x020401ff, "2.4.1", true, 2}, Case{0x020500ff, "2.5.0", false, 1},
                        Case{0x020600ff, "2.6.0", false, 1}, Case{0x020601ff, "2.6.1", false, 0},
                        Case{0x020b00ff, "2.11.0", false, 0}}) {
    CAPTURE(c.text);
    const auto verdict = judge_kafka_version(c.version);
    CHECK(verdict.refused == c.refused);
    CHECK(verdict.notes.size() == c.notes);
    CHECK(verdict.text().empty() == verdict.notes.empty());
    CHECK(kafka_version_text(c.version) == c.text);
  }
}
