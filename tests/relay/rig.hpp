#pragma once
// A database, topics, and the real outboxd between them. For tests of what a relay does as a whole.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/integration/sql_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/http.hpp"
#include "tests/support/kafka.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_directory.hpp"

namespace outbox::test {

inline constexpr std::string_view admin_socket = "socket";  ///< one of the rig's own

struct RigOptions {
  relay::MigrateOptions migrate{};
  std::string source = "poll_interval: 100ms";  ///< more members of `source:`
  std::string pipeline{};                       ///< more lines of the pipeline, each "    name: …\n"
  std::string admin{"off"};                     ///< `admin.listen`
  std::string process{};                        ///< more lines behind `admin.listen`, then of the top level
  std::string kafka{};                          ///< a cluster of the test's own; empty: the shared one
  std::string properties{};                     ///< more of `kafka:`, each ", name: value"
  std::string postgres{};                       ///< more of `postgres:`, likewise
  std::string uri{};                            ///< in place of the database's own
  std::map<std::string, std::string> env{};     ///< of the relays
  std::string server{};                         ///< a PostgreSQL of the test's own; empty: the shared one
  std::string ttl = "2s";                       ///< of the leases
};

struct StartOptions {
  std::string instance{};  ///< empty: a name of its own
  int lanes = 8;
  std::string uri{};                         ///< another way to the same database
  std::map<std::string, std::string> env{};  ///< of this one, besides the rig's
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
  /// Its path; written by start().
  [[nodiscard]] std::string config() const { return (folder_ / "outboxd.yaml").string(); }

  /// More lines of the pipeline, for those that are started from now on.
  void pipeline(std::string lines) { options_.pipeline = std::move(lines); }
  /// Starts an outboxd; several may run.
  Process& start(const StartOptions& start = {}) {
    const auto file = folder_ / ("outboxd" + start.instance + ".yaml");
    write_file(file, yaml(start));
    auto env = start.env;
    env.insert(options_.env.begin(), options_.env.end());
    relays_.push_back(std::make_unique<Process>(
        OUTBOXD_PROGRAM, ProcessOptions{.args = {"run", "-c", file.string()}, .env = std::move(env)}));
    return *relays_.back();
  }
  /// Another command on the same file, to its end.
  [[nodiscard]] Finished outboxd(std::vector<std::string> args) const {
    write();
    args.insert(args.end(), {"-c", (folder_ / "outboxd.yaml").string()});
    return run_program(OUTBOXD_PROGRAM, {.args = std::move(args)});
  }
  /// Writes the file again, as the options say now.
  void write() const { write_file(folder_ / "outboxd.yaml", yaml({})); }
  /// The file itself.
  [[nodiscard]] std::string file() const {
    write();
    return (folder_ / "outboxd.yaml").string();
  }
  void write(std::string_view text) const { write_file(folder_ / "outboxd.yaml", text); }
  [[nodiscard]] RigOptions& options() { return options_; }
  /// Where the relay shows itself: `options.admin` must be admin_socket.
  [[nodiscard]] HttpReply shown(std::string_view target) const {
    return http_get({.path = (folder_ / "admin.sock").string()}, target);
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
  [[nodiscard]] std::string yaml(const StartOptions& start) const {
    std::string table = options_.migrate.table.quoted();
    std::string yaml_quoted;  // in YAML's single quotes, one of those is doubled
    for (const char c : table) yaml_quoted += c == '\'' ? std::string{"''"} : std::string{c};
    const std::string listen =
        options_.admin == admin_socket ? "unix:" + (folder_ / "admin.sock").string() : options_.admin;
    const std::string its_own = options_.uri.empty() ? uri() : options_.uri;
    const std::string from = start.uri.empty() ? its_own : start.uri;
    return (start.instance.empty() ? "" : "instance: " + start.instance + "\n") + "admin:\n  listen: \"" +
           listen + "\"\n" + options_.process + "pipelines:\n  - name: rig\n" + "    postgres: { uri: \"" +
           from + "\"" + options_.postgres + " }\n    source: { table: '" + yaml_quoted +
           "', lanes: " + std::to_string(start.lanes) + ", " + options_.source +
           " }\n    lease: { ttl: " + options_.ttl + " }\n" + options_.pipeline +
           "    kafka: { bootstrap.servers: \"" + kafka() + "\"" + options_.properties + " }\n";
  }

  RigOptions options_;
  OutboxDatabase database_;
  TemporaryDirectory folder_{"outbox-relay"};
  std::vector<std::unique_ptr<Process>> relays_;
};

/// Of "HOST:PORT", or of a URI in front of its path.
inline std::uint16_t port_of(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  return static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1)));
}

/// The bodies of a key's records, in the order of their offsets.
inline std::vector<std::string> bodies_of(const std::vector<KafkaRecord>& records, std::string_view key) {
  std::vector<std::string> out;
  for (const KafkaRecord& r : records)
    if (r.key == key) out.push_back(r.body.value_or("(null)"));
  return out;
}

}  // namespace outbox::test
