#pragma once
// What is known of librdkafka's versions and matters for the promise. Pure; the version asked about is the
// one that runs, which need not be the one that was compiled with.

#include <string_view>

namespace outbox::relay {

enum class LibraryFit { fit, limited, unfit };

struct LibraryJudgement {
  LibraryFit fit = LibraryFit::fit;
  std::string_view why;  ///< for people; empty where fit
};

/// Shape: `version` as rd_kafka_version() gives it, 0xMMmmrrxx. unfit: not to be used with idempotence.
/// Source: librdkafka's CHANGELOG.md.
[[nodiscard]] LibraryJudgement judge_librdkafka(int version) noexcept;

}  // namespace outbox::relay
