#pragma once
// Which versions of librdkafka keep the promise. The library is loaded at run time and may be another than
// the one built with, so the relay asks it at start and judges the answer by this table. Pure.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace outbox::relay {

struct VersionVerdict {
  bool refused = false;
  std::vector<std::string_view> notes;     ///< for people: why refused, or what this version cannot do
  [[nodiscard]] std::string text() const;  ///< the notes in one line
};

/// Shape: `version` as rd_kafka_version() gives it: 0xMMmmrrpp, pp = 0xff for a release.
/// Source: librdkafka's CHANGELOG.md.
[[nodiscard]] VersionVerdict judge_kafka_version(std::int32_t version);

/// "2.0.2"
[[nodiscard]] std::string kafka_version_text(std::int32_t version);

}  // namespace outbox::relay
