#include "relay/core/kafka_library.hpp"

namespace outbox::relay {
namespace {

constexpr int version_of(int major, int minor, int patch) {
  return major << 24 | minor << 16 | patch << 8;
}

}  // namespace

LibraryJudgement judge_librdkafka(int version) noexcept {
  const int release = version & ~0xff;
  if (release < version_of(2, 0, 2)) {
    return {LibraryFit::unfit, "it is older than 2.0.2, the oldest that is tested"};
  }
  if (release >= version_of(2, 2, 0) && release < version_of(2, 5, 0)) {
    return {LibraryFit::unfit,
            "2.2 to 2.4 are not to be trusted with idempotence; use 2.0.2, or 2.5 and later"};
  }
  if (release < version_of(2, 6, 1)) {
    return {LibraryFit::limited,
            "before 2.6.1 it cannot log in to Kafka 4 by SCRAM; use another mechanism there"};
  }
  return {};
}

}  // namespace outbox::relay
