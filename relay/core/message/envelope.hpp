#pragma once
// What a message looks like on Kafka: its headers, and how large its record is. docs/protocol.md, "Headers",
// is the same for readers. Pure; one Envelope a pipeline, used by one thread; it keeps its buffers, so that a
// message costs no allocation.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "relay/core/types.hpp"

namespace outbox::relay {

struct EnvelopeOptions {
  HeaderPreset preset = HeaderPreset::plain;
  Tracestate tracestate = Tracestate::pass;
  std::string source{};  ///< the pipeline's name: outbox-source and ce_source
  std::string content_type =
      "application/json";  ///< of cloudevents, where the row names none; empty: left out
};

class Envelope {
 public:
  explicit Envelope(EnvelopeOptions options);

  /// Shape: outbox-id, outbox-seq, outbox-created-at, outbox-source, outbox-due-at of a scheduled row (its place
  /// in its key's order is that moment, and not its seq), then the preset's, then the row's own as
  /// they are. The views hold until the next call, and while the message's memory lives. Errors: quarantine:
  /// a header of the row takes a name that only the relay gives (`outbox-…`, the preset's identity names;
  /// case is ignored), since a reader could not tell which of the two is true.
  [[nodiscard]] Result<std::span<const Header>> headers(const Message& message);

  /// Shape: an upper bound of the size that a broker compares with max.message.bytes: a record batch of this
  /// one record, uncompressed. At most 40 bytes above the true one, but for a row that names its own ce_type
  /// or content-type. Units: bytes. Source: https://kafka.apache.org/documentation/#recordbatch
  [[nodiscard]] std::int64_t encoded_size(const Message& message) const;

 private:
  using TimeText = std::array<char, 27>;  // 2026-11-29T16:05:00.123456Z

  void add_own(const Message& message);
  void add_cloudevents(const Message& message);
  void add_row(const Message& message);
  void write_time(WallTime at);

  EnvelopeOptions options_;
  std::int64_t fixed_size_ =
      0;  // of a record with the relay's own headers, without topic, key, body and the row's headers
  std::vector<Header> headers_;
  std::array<char, 36> id_{};
  std::array<char, 20> seq_{};
  TimeText time_{};
  std::string due_at_{};
  std::string tracestate_{};
  std::chrono::sys_seconds time_second_ = std::chrono::sys_seconds::min();  // whose text time_ holds
};

}  // namespace outbox::relay
