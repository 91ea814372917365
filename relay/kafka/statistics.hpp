#pragma once
// What librdkafka says of itself every statistics.interval.ms, as far as it matters to an operator. Bounded:
// topics and partitions are left out, brokers beyond the cap are told together. Pure; any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace outbox::relay {

struct BrokerStatistics {
  std::string name{};  ///< "host:port", or other_brokers
  bool up = false;
  Micros round_trip_mean{0};  ///< of the last interval; 0: nothing was asked
  Micros round_trip_p99{0};
  Micros queued_p99{0};               ///< a request's time in librdkafka before it is sent
  std::int64_t waiting_requests = 0;  ///< sent, and not answered yet
  std::int64_t request_errors = 0;    ///< totals since the producer was made, from here on
  std::int64_t request_timeouts = 0;
  std::int64_t request_retries = 0;
  std::int64_t connects = 0;
};

struct KafkaStatistics {
  std::int64_t queued_messages = 0;  ///< handed over and not reported
  std::int64_t queued_bytes = 0;
  std::vector<BrokerStatistics> brokers{};  ///< by name
};

inline constexpr std::string_view other_brokers = "(others)";
inline constexpr std::size_t brokers_told_max = 30;

/// nullopt: it is not what librdkafka writes. Source: librdkafka's STATISTICS.md
[[nodiscard]] std::optional<KafkaStatistics> parse_kafka_statistics(std::string_view json);

}  // namespace outbox::relay
