#pragma once
// A real pgbouncer in transaction mode before one database of a test: fewer server connections than the test
// has clients, so that each transaction may meet another server process. Blocks; throws where something does
// not work.

#include <memory>
#include <string>

#include "tests/support/postgres.hpp"
#include "tests/support/process.hpp"

namespace outbox::test {

class PgBouncer {
 public:
  /// `uri`: of the database, as the user whom the pool logs in as.
  explicit PgBouncer(const std::string& uri, int server_connections = 3);

  [[nodiscard]] std::string uri() const;
  /// Connections to the server that the pool has now.
  [[nodiscard]] std::string log() const { return read_file(folder_ / "pgbouncer.log"); }

 private:
  TemporaryDirectory folder_{"outbox-pgbouncer"};
  std::string database_;
  std::string user_;
  std::unique_ptr<Process> process_;
};

}  // namespace outbox::test
