#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <random>

#include "tests/support/postgres.hpp"
#include "tests/support/postgres_files.hpp"
#include "tests/support/process.hpp"
#include "tests/support/services.hpp"

namespace outbox::test {
namespace {

namespace fs = std::filesystem;

bool is_free(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // as the server does
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return free;
}

// Below 32768, where outgoing connections get theirs: a server that is stopped must find its port again.
int free_port() {
  std::random_device random;
  for (int i = 0; i < 200; ++i) {
    const int port = std::uniform_int_distribution<int>(19'000, 32'000)(random);
    if (is_free(port)) return port;
  }
  throw std::runtime_error("found no free port");
}

std::vector<pid_t> children_of(pid_t parent) {
  const std::string file =
      "/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children";
  const std::string text = read_file(file);
  std::vector<pid_t> out;
  for (const char* at = text.data(); at < text.data() + text.size(); ++at) {
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(at, text.data() + text.size(), pid);
    if (error == std::errc{}) out.push_back(pid);
    at = end;
  }
  return out;
}

// With all that a standby needs in order to follow it.
void copy_of(const PostgresServer& primary, const fs::path& folder) {
  ProcessOptions options{.args = {"-d", primary.uri(), "-D", folder, "-X", "stream", "-c", "fast", "-R"},
                         .user = postgres_user()};
  const Finished copied = run_program(postgres_program("pg_basebackup"), std::move(options), Millis{60'000});
  if (copied.status.code != 0) throw std::runtime_error("pg_basebackup failed: " + copied.errors);
}

}  // namespace

struct PostgresServer::State {
  PostgresOptions options;
  TemporaryDirectory folder{"outbox-postgres"};
  int port = free_port();
  std::unique_ptr<Process> server;

  [[nodiscard]] std::string uri(const std::string& database, const std::string& user) const {
    return "postgresql://" + user + "@127.0.0.1:" + std::to_string(port) + "/" + database;
  }

  [[nodiscard]] ProcessOptions command() const {
    std::map<std::string, std::string> settings{{"listen_addresses", "127.0.0.1"},
                                                {"port", std::to_string(port)},
                                                {"unix_socket_directories", folder.path()},
                                                {"full_page_writes", "off"},
                                                {"wal_level", "logical"},
                                                {"max_connections", "200"},
                                                {"shared_buffers", "64MB"},
                                                {"log_min_error_statement", "panic"}};
    if (options.tls)
      settings.insert({{"ssl", "on"}, {"ssl_cert_file", "server.crt"}, {"ssl_key_file", "server.key"}});
    for (const auto& [name, value] : options.settings) settings[name] = value;
    std::vector<std::string> args{"-D", folder / "data"};
    for (const auto& [name, value] : settings) {
      args.emplace_back("-c");
      args.emplace_back(name).append("=").append(value);
    }
    return {.args = std::move(args),
            .folder = folder.path(),
            .output = folder / "server.log",
            .errors = folder / "server.log",
            .user = postgres_user(),
            .death_signal = SIGQUIT};
  }

  // In the data folder, and the server's user's alone, or the server refuses them.
  void take_certificate() const {
    const auto user = postgres_user();
    for (const auto& [from, name] :
         {std::pair{options.tls->certificate, "server.crt"}, std::pair{options.tls->key, "server.key"}}) {
      const fs::path file = folder / "data" / name;
      fs::copy_file(from, file, fs::copy_options::overwrite_existing);
      fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
      if (user && ::chown(file.c_str(), user->first, user->second) != 0)
        throw std::runtime_error("chown failed");
    }
  }

  [[nodiscard]] std::string host_rules() const {
    const std::string kind = options.tls ? "hostssl" : "host";
    const std::string who = " 127.0.0.1/32 " + options.host_auth + "\n";
    return kind + " all all" + who + kind + " replication all" + who;
  }

  void launch() { server = std::make_unique<Process>(postgres_program("postgres"), command()); }

  void signal_all(int signal) {
    const std::vector<pid_t> children = children_of(server->pid());
    ::kill(server->pid(), signal);
    for (const pid_t child : children) ::kill(child, signal);
  }
};

PostgresServer::PostgresServer(PostgresOptions options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  const auto user = postgres_user();
  const fs::path& folder = state_->folder.path();
  if (user && ::chown(folder.c_str(), user->first, user->second) != 0)
    throw std::runtime_error("chown failed");
  if (state_->options.standby_of != nullptr) {
    copy_of(*state_->options.standby_of, folder / "data");
    start();
    return;
  }
  make_data_folder(folder / "data");
  write_file(folder / "data/pg_hba.conf",
             "local all all trust\nlocal replication all trust\n" + state_->host_rules());
  if (state_->options.tls) state_->take_certificate();
  start();
}

PostgresServer::~PostgresServer() {
  if (!state_->server || !state_->server->running()) return;
  state_->signal_all(SIGCONT);
  state_->server->kill(SIGQUIT);
  static_cast<void>(happens_within(patience, [&] { return !state_->server->running(); }));
}

void PostgresServer::start() {
  const pg::ConnectOptions local{.uri = local_uri()};
  if (!state_->server) state_->launch();
  const bool up = happens_within(patience, [&] {
    // It ends at once while processes of a killed one are still going, or where the port was just taken.
    if (!state_->server->running()) state_->launch();
    return pg::Session::connect(local).has_value();
  });
  if (!up) throw std::runtime_error("PostgreSQL does not start: " + log());
}

void PostgresServer::stop(StopMode mode) {
  state_->server->kill(mode == StopMode::smart ? SIGTERM : mode == StopMode::fast ? SIGINT : SIGQUIT);
  state_->server->wait();
}

void PostgresServer::promote() {
  must(must(pg::Session::connect({.uri = uri()})).exec("SELECT pg_promote()"));
}

void PostgresServer::kill() {
  state_->signal_all(SIGKILL);
  state_->server->wait();
}

void PostgresServer::pause() {
  state_->signal_all(SIGSTOP);
}
void PostgresServer::resume() {
  state_->signal_all(SIGCONT);
}

int PostgresServer::port() const {
  return state_->port;
}
std::string PostgresServer::uri(const std::string& database, const std::string& user) const {
  return state_->uri(database, user);
}
std::string PostgresServer::socket_folder() const {
  return state_->folder.path();
}
std::string PostgresServer::local_uri(const std::string& database) const {
  return "postgresql://postgres@/" + database + "?host=" + socket_folder() +
         "&port=" + std::to_string(port());
}
std::string PostgresServer::log() const {
  return read_file(state_->folder / "server.log");
}

const std::string& shared_postgres() {
  static std::unique_ptr<PostgresServer> own;
  static const std::string uri = [] {
    if (const auto given = service_address("OUTBOX_TEST_POSTGRES")) return *given;
    own = std::make_unique<PostgresServer>();
    return own->uri();
  }();
  return uri;
}

}  // namespace outbox::test
