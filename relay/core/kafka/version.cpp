#include "relay/core/kafka/version.hpp"

#include <array>

namespace outbox::relay {
namespace {

struct Flaw {
  std::int32_t from;    // the first version that has it
  std::int32_t before;  // the first one that has not
  bool refused;
  std::string_view note;
};

constexpr std::array flaws{
    Flaw{0, 0x02000200, true, "older than 2.0.2, the oldest that the relay is tested with"},
    Flaw{0x02000200, 0x02030000, false,
         "fixes to the idempotent producer came with 2.3.0: a duplicate is likelier"},
    Flaw{0x02020000, 0x02050000, true,
         "2.2 to 2.4 are not to be used with an idempotent producer: take 2.0.2, or 2.6.1 and later"},
    Flaw{0x02000200, 0x02060100, false,
         "cannot log in by SCRAM to Kafka 4: use PLAIN or mutual TLS, or 2.6.1 and later"},
};

}  // namespace

std::string VersionVerdict::text() const {
  std::string out;
  for (const auto note : notes) out.append(out.empty() ? "" : "; ").append(note);
  return out;
}

VersionVerdict judge_kafka_version(std::int32_t version) {
  const std::int32_t release = version & ~0xff;
  VersionVerdict verdict;
  for (const auto& flaw : flaws) {
    if (release < flaw.from || release >= flaw.before) continue;
    verdict.refused = verdict.refused || flaw.refused;
    verdict.notes.push_back(flaw.note);
  }
  return verdict;
}

std::string kafka_version_text(std::int32_t version) {
  return std::to_string(version >> 24 & 0xff) + "." + std::to_string(version >> 16 & 0xff) + "." +
         std::to_string(version >> 8 & 0xff);
}

}  // namespace outbox::relay
