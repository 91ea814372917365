#pragma once
// How much a run of the benchmark measures. Plain values; the command line fills them.

#include <string>

namespace bench {

struct Options {
  std::string postgres{};  ///< a superuser's uri; empty: a server of its own
  std::string kafka{};     ///< HOST:PORT; empty: a broker of its own
  std::string results = "build/bench/relay.json";
  bool quick = false;
  int rounds = 3;
  int rows = 500'000;            ///< of the backlog
  int large_rows = 10'000;       ///< of 1 MB each
  int sent_rows = 5'000'000;     ///< that a poll must not notice
  int passing_rows = 1'000'000;  ///< beside an idle transaction
  int latency_s = 10;            ///< of each round, after a second of warming up
  int rate = 1'000;              ///< rows a second while latency is measured
  int idle_s = 10;
  int far_ms = 10;  ///< round trip to a database that is far away
};

/// What `--quick` makes smaller.
inline void make_quick(Options& o) {
  o.rounds = 1;
  o.rows = 150'000;
  o.large_rows = 1'000;
  o.sent_rows = 500'000;
  o.passing_rows = 200'000;
  o.latency_s = 5;
  o.idle_s = 5;
}

}  // namespace bench
