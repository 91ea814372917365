#pragma once
// Reads a topic as its committed readers see it, one partition after the other, each from an offset up to
// what was its end. For `outboxd reconcile`: it joins no group and commits nothing. Blocks; one thread.
// Lifecycle: make() → for each partition start() → next() … until it has none → stop() or the next start().

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "relay/kafka/options.hpp"

namespace outbox::relay {

/// Its views hold until the next call of the reader.
struct ReadRecord {
  std::int64_t offset = 0;
  WallTime at{};  ///< the record's timestamp
  std::optional<std::string_view> key{};
  std::optional<std::string_view> body{};
  std::vector<std::pair<std::string_view, std::optional<std::string_view>>> headers{};

  /// The first header of that name; nullopt: there is none, or it is null.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
};

struct PartitionEnds {
  std::int64_t low = 0;     ///< the first offset that is still kept
  std::int64_t stable = 0;  ///< committed readers see what lies below: no transaction is open there
  std::int64_t high = 0;    ///< the end
};

class KafkaReader {
 public:
  /// Errors: fatal: properties that librdkafka does not take.
  [[nodiscard]] static Result<KafkaReader> make(const KafkaOptions& options);
  KafkaReader(KafkaReader&&) noexcept;
  KafkaReader& operator=(KafkaReader&&) noexcept;
  ~KafkaReader();

  /// Errors of all: retry: no answer within `patience`; fatal: not allowed to read.
  /// Shape: how many partitions; nullopt: the topic is not there.
  [[nodiscard]] Result<std::optional<std::int32_t>> partitions(const std::string& topic, Millis patience);
  [[nodiscard]] Result<PartitionEnds> ends(const std::string& topic, std::int32_t partition, Millis patience);
  /// Shape: the first offset whose record is of `at` or later; the end where there is none.
  [[nodiscard]] Result<std::int64_t> offset_at(const std::string& topic, std::int32_t partition, WallTime at,
                                               Millis patience);

  [[nodiscard]] Status start(const std::string& topic, std::int32_t partition, std::int64_t from,
                             std::int64_t stable);
  /// Shape: the next record that was committed; nullopt: all below `stable` were read. A time-out is an
  /// error, never "nothing there".
  [[nodiscard]] Result<std::optional<ReadRecord>> next(Millis patience);
  void stop();

 private:
  struct State;
  explicit KafkaReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace outbox::relay
