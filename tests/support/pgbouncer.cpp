#include "tests/support/pgbouncer.hpp"

#include <unistd.h>

#include "tests/support/postgres_files.hpp"

namespace outbox::test {
namespace {

constexpr const char* program = "/usr/sbin/pgbouncer";  // Debian's, which is not in everybody's PATH
constexpr const char* port = "6432";                    // of a socket in a folder of its own

std::string value_of(pg::Session& session, const std::string& sql) {
  return std::string(must(session.exec(sql)).text(0, 0));
}

}  // namespace

PgBouncer::PgBouncer(const std::string& uri, int server_connections) {
  pg::Session session = must(pg::Session::connect({.uri = uri}));
  database_ = value_of(session, "SELECT current_database()");
  user_ = value_of(session, "SELECT current_user");
  write_file(folder_ / "pgbouncer.ini",
             "[databases]\n" + database_ + " = host=" + value_of(session, "SELECT host(inet_server_addr())") +
                 " port=" + value_of(session, "SELECT inet_server_port()") + " dbname=" + database_ +
                 " user=" + user_ +
                 "\n[pgbouncer]\npool_mode = transaction\nauth_type = any\nunix_socket_dir = " +
                 folder_.path().string() + "\nlisten_port = " + port +
                 "\nmax_client_conn = 100\ndefault_pool_size = " + std::to_string(server_connections) + "\n");
  const auto user = postgres_user();
  if (user && ::chown(folder_.path().c_str(), user->first, user->second) != 0)
    throw std::runtime_error("chown failed");
  process_ = std::make_unique<Process>(program, ProcessOptions{.args = {(folder_ / "pgbouncer.ini").string()},
                                                               .output = folder_ / "pgbouncer.log",
                                                               .errors = folder_ / "pgbouncer.log",
                                                               .user = user});
  eventually("pgbouncer takes connections",
             [&] { return pg::Session::connect({.uri = this->uri()}).has_value(); });
}

std::string PgBouncer::uri() const {
  return "postgresql://" + user_ + "@/" + database_ + "?host=" + folder_.path().string() + "&port=" + port;
}

}  // namespace outbox::test
