#pragma once
// A steady stream of small transactions, and when each message of it reached a consumer. Writers and consumer
// share this process's monotonic clock. A row is stamped when its COMMIT has returned to the writer.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/stage.hpp"

namespace bench {

struct TrafficOptions {
  std::string database;
  std::string topic;
  int rate = 0;    ///< rows a second, one a transaction
  int warm_s = 1;  ///< not counted
  int counted_s = 0;
};

struct TrafficSeen {
  std::vector<double> latency_ms;  ///< from the stamp to the consumer, of the counted rows that arrived
  int missing = 0;                 ///< counted rows that did not arrive within 10 s
  double rows_per_s = 0;           ///< what the writers managed
};

struct TrafficHooks {
  std::function<void(int partition, std::string_view body)>
      committed{};               ///< by the writer, after each commit
  std::function<void()> warm{};  ///< as the counted part begins
  std::function<void()> over{};  ///< as it ends
};

/// Blocks until it is over. The topic exists and is empty.
[[nodiscard]] TrafficSeen run_traffic(Stage& stage, const TrafficOptions& options, const TrafficHooks& hooks);

}  // namespace bench
