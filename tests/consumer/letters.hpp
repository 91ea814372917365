#pragma once
// Records for tests: a Letter owns the bytes that a Record only views.

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "consumer/core/backlog.hpp"
#include "outbox/message.hpp"

namespace outbox::test {

struct Letter {
  std::string topic = "transfers";
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::optional<std::string> key = "k";
  std::optional<std::string> body = "{}";
  std::vector<std::pair<std::string, std::optional<std::string>>> headers{};
  int attempt = 1;
  std::int64_t epoch = 0;

  /// A view; valid as long as this object lives and stays where it is.
  [[nodiscard]] Record record() const {
    views_.clear();
    for (const auto& [name, value] : headers) views_.push_back({name, value});
    Record out{.topic = topic,
               .partition = partition,
               .offset = offset,
               .headers = views_,
               .epoch = epoch,
               .attempt = attempt};
    if (key) out.key = *key;
    if (body) out.body = *body;
    return out;
  }
  mutable std::vector<Header> views_{};
};

/// As the relay sends it with the plain preset.
inline Letter letter(const std::string& msg_id, std::optional<std::string> body = "{}",
                     std::int64_t offset = 0) {
  return {.offset = offset, .body = std::move(body), .headers = {{"outbox-id", msg_id}}};
}

/// A uuid of version 7 that was made `age` before this process started, and ends in `n`. Young unless a test
/// says otherwise: upkeep forgets what is older than the horizon.
inline std::string v7(int n, std::chrono::hours age = {}) {
  static const auto start = std::chrono::system_clock::now();
  const auto ms = std::chrono::duration_cast<Millis>((start - age).time_since_epoch()).count();
  char text[64];
  std::snprintf(text, sizeof text, "%08llx-%04llx-7000-8000-%012d", static_cast<unsigned long long>(ms) >> 16,
                static_cast<unsigned long long>(ms) & 0xffff, n);
  return text;
}

inline Fetched fetched(Letter letter) {
  auto owned = std::make_shared<const Letter>(std::move(letter));
  const Record record = owned->record();
  const auto bytes =
      static_cast<std::int64_t>(record.key.value_or("").size() + record.body.value_or("").size());
  return {record, owned, bytes};
}

inline std::vector<Record> records(const std::vector<Letter>& letters) {
  std::vector<Record> out;
  out.reserve(letters.size());
  for (const auto& one : letters) out.push_back(one.record());
  return out;
}

}  // namespace outbox::test
