#pragma once
// What the demo is asked to do. The conductor passes its parts of it on to the programs it starts, which are
// roles of this same program.

#include <cstdint>
#include <string>

namespace demo {

struct DemoOptions {
  std::string kafka = "embedded";  ///< "embedded", "real", or HOST:PORT of a cluster that exists
  int transfers = 10'000;          ///< attempted; some of them roll back
  int accounts = 100;
  int connections = 8;   ///< of the payment core
  int rate = 900;        ///< transfers a second, so that the kills fall into the work; 0: as fast as it goes
  int relay_kills = 3;   ///< kill -9
  int ledger_kills = 3;  ///< kill -9
  int resends = 200;     ///< sent rows that are set to be sent again
  std::uint64_t seed = 1;
  int patience_s = 120;  ///< without progress for so long, the demo has failed
};

struct CoreOptions {
  std::string postgres;
  std::string topic;
  int transfers = 0;
  int accounts = 0;
  int connections = 1;
  int rate = 0;
  std::uint64_t seed = 1;
};

struct LedgerOptions {
  std::string postgres;
  std::string kafka;
  std::string topic;
  int session_timeout_ms =
      6000;  ///< how long a killed one is missed; 6000 is the least that a real broker allows
};

}  // namespace demo
