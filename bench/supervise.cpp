#include "bench/supervise.hpp"

#include <spawn.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/figures.hpp"
#include "bench/stage.hpp"
#include "tests/support/temporary_directory.hpp"

extern char** environ;

namespace bench {
namespace {

// Held back from the start on, so that none ends the program between the start of a server and its note.
class HeldSignals {
 public:
  HeldSignals() {
    ::sigemptyset(&held_);
    for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) ::sigaddset(&held_, signal);
    ::sigprocmask(SIG_BLOCK, &held_, &before_);
  }
  ~HeldSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  [[nodiscard]] int next() const {
    int signal = 0;
    ::sigwait(&held_, &signal);
    return signal;
  }
  [[nodiscard]] const sigset_t& before() const { return before_; }

 private:
  sigset_t held_{};
  sigset_t before_{};
};

pid_t start(std::vector<std::string> words, const sigset_t& signals) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawnattr_t how;
  ::posix_spawnattr_init(&how);
  ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
  ::posix_spawnattr_setsigmask(&how, &signals);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, "/proc/self/exe", nullptr, &how, argv.data(), environ);
  ::posix_spawnattr_destroy(&how);
  if (error != 0) throw std::runtime_error("the program cannot run itself again");
  return pid;
}

}  // namespace

int run_beside_servers(const Options& options, int argc, char** argv) {
  const HeldSignals signals;
  Figures::say("starting PostgreSQL and Kafka");
  Stage stage(options);
  std::vector<std::string> words(argv, argv + argc);
  if (options.postgres.empty()) words.insert(words.end(), {"--postgres", stage.postgres_uri()});
  if (options.kafka.empty()) words.insert(words.end(), {"--kafka", stage.kafka().bootstrap()});
  const outbox::test::TemporaryDirectory scratch("outbox-bench");
  ::setenv("TMPDIR", scratch.path().c_str(), 1);  // what an interrupted run leaves goes with it
  const pid_t run = start(std::move(words), signals.before());
  int interrupted = 0;
  int status = 0;
  while (::waitpid(run, &status, WNOHANG) == 0) {
    const int signal = signals.next();
    if (signal == SIGCHLD) continue;
    interrupted = signal;
    ::kill(run, SIGTERM);
  }
  if (interrupted != 0) return 128 + interrupted;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace bench
