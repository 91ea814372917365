#pragma once
// A database, topics, and the real outboxd between them. For tests of what a relay does as a whole.

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/integration/sql_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/kafka.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_directory.hpp"

namespace outbox::test {

struct RigOptions {
  relay::MigrateOptions migrate{};
  std::string source = "poll_interval: 100ms";  ///< more members of `source:`
  std::string pipeline{};                       ///< more lines of the pipeline, each "    name: …\n"
  std::string kafka{};                          ///< a cluster of the test's own; empty: the shared one
  std::string server{};                         ///< a PostgreSQL of the test's own; empty: the shared one
};

class RelayRig {
 public:
  explicit RelayRig(RigOptions options = {})
      : options_(std::move(options)), database_(options_.migrate, options_.server) {}

  /// After the server was away.
  void reconnect() { database_.reconnect(); }
  [[nodiscard]] pg::Session& sql() { return database_.sql(); }
  std::string ask(std::string_view sql, const pg::Params& params = {}) {
    return test::ask(database_.sql(), sql, params);
  }
  [[nodiscard]] std::string table() const { return database_.table(); }
  [[nodiscard]] std::string kafka() const {
    return options_.kafka.empty() ? KafkaCluster::shared().bootstrap() : options_.kafka;
  }
  [[nodiscard]] std::string uri() const { return database_.uri(); }

  /// Starts an outboxd; several may run.
  Process& start() {
    write_file(folder_ / "outboxd.yaml", yaml());
    relays_.push_back(std::make_unique<Process>(
        OUTBOXD_PROGRAM, ProcessOptions{.args = {"run", "-c", (folder_ / "outboxd.yaml").string()}}));
    return *relays_.back();
  }
  [[nodiscard]] std::string count(std::string_view status) {
    return ask("SELECT count(*) FROM " + table() + " WHERE status = '" + std::string{status} + "'");
  }
  void eventually_none_pending(Millis deadline = patience) {
    await(
        "nothing is pending", [&] { return count("PENDING") == "0"; }, deadline);
  }
  /// eventually(), which on failure also tells what the relays said.
  void await(std::string_view what, const std::function<bool()>& condition, Millis deadline = patience) {
    if (!happens_within(deadline, condition))
      throw std::runtime_error(std::string{what} + " did not happen; the relays said:\n" + logs());
  }
  [[nodiscard]] std::string logs() const {
    std::string out;
    for (const auto& relay : relays_) out += relay->errors();
    return out;
  }

 private:
  [[nodiscard]] std::string yaml() const {
    std::string table = options_.migrate.table.quoted();
    std::string yaml_quoted;  // in YAML's single quotes, one of those is doubled
    for (const char c : table) yaml_quoted += c == '\'' ? std::string{"''"} : std::string{c};
    return "pipelines:\n  - name: rig\n    postgres: { uri: \"" + uri() + "\" }\n    source: { table: '" +
           yaml_quoted + "', " + options_.source + " }\n    lease: { ttl: 2s }\n" + options_.pipeline +
           "    kafka: { bootstrap.servers: \"" + kafka() + "\" }\n";
  }

  RigOptions options_;
  OutboxDatabase database_;
  TemporaryDirectory folder_{"outbox-relay"};
  std::vector<std::unique_ptr<Process>> relays_;
};

/// The bodies of a key's records, in the order of their offsets.
inline std::vector<std::string> bodies_of(const std::vector<KafkaRecord>& records, std::string_view key) {
  std::vector<std::string> out;
  for (const KafkaRecord& r : records)
    if (r.key == key) out.push_back(r.body.value_or("(null)"));
  return out;
}

}  // namespace outbox::test
