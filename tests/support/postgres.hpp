#pragma once
// A real PostgreSQL for tests: TestDatabase for nearly all of them, a server of its own for those that stop
// it. Everything here blocks, and throws std::runtime_error where something does not work.

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "pg/session.hpp"
#include "tests/support/certificates.hpp"

namespace outbox::test {

enum class StopMode { smart, fast, immediate };

struct PostgresOptions {
  std::map<std::string, std::string> settings{};  ///< postgresql.conf, such as {"synchronous_commit", "off"}
  const class PostgresServer* standby_of = nullptr;  ///< a copy that follows this server, by streaming
  std::string host_auth = "trust";   ///< pg_hba.conf's method for 127.0.0.1; the unix socket always trusts
  std::optional<Certificate> tls{};  ///< the server's; where given, 127.0.0.1 takes TLS connections alone
};

/// A throwaway server in a temporary folder, on a free port of 127.0.0.1 and a unix socket; run as the user
/// postgres where the test is root. It starts with this object and is gone with it. fsync is on, since
/// durability is what we test.
class PostgresServer {
 public:
  explicit PostgresServer(PostgresOptions options = {});
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  /// Again, on the same port with the same data; returns when it takes connections.
  void start();
  void stop(StopMode mode = StopMode::fast);
  void promote();  ///< a standby becomes a primary
  void kill();     ///< SIGKILL to all of it: the machine lost power
  void pause();    ///< SIGSTOP to all of it: connections stay open and nothing answers
  void resume();

  [[nodiscard]] int port() const;
  [[nodiscard]] std::string uri(const std::string& database = "postgres",
                                const std::string& user = "postgres") const;
  [[nodiscard]] std::string socket_folder() const;
  /// By the unix socket, as the superuser: what host_auth and tls say does not matter there.
  [[nodiscard]] std::string local_uri(const std::string& database = "postgres") const;
  [[nodiscard]] std::string log() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The uri of the server that tests share: OUTBOX_TEST_POSTGRES, or else one that this process starts once.
[[nodiscard]] const std::string& shared_postgres();

/// An empty database with a random name, dropped with this object, whoever is connected to it.
class TestDatabase {
 public:
  /// On the shared server, or on the one whose superuser's uri is given.
  explicit TestDatabase(std::string server_uri = shared_postgres());
  ~TestDatabase();
  TestDatabase(const TestDatabase&) = delete;
  TestDatabase& operator=(const TestDatabase&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Empty user: the superuser.
  [[nodiscard]] std::string uri(const std::string& user = "") const;
  [[nodiscard]] pg::Session session(const std::string& user = "") const;

 private:
  std::string server_uri_;
  std::string name_;
};

/// The value of a Result, or a std::runtime_error with its text.
template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// `uri` with another database, and another user where one is given. `uri` is
/// postgresql://user@host:port/database.
[[nodiscard]] std::string with_database(const std::string& uri, const std::string& database,
                                        const std::string& user = "");

}  // namespace outbox::test
