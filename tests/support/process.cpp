#include "tests/support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

extern char** environ;

namespace outbox::test {
namespace {

// Everything that needs memory is made before the fork: the child of a process with threads may only call the
// kernel.
struct Image {
  std::vector<std::string> words;
  std::vector<std::string> settings;
  std::vector<char*> argv;
  std::vector<char*> envp;

  Image(const std::string& program, const ProcessOptions& options) : words{program} {
    words.insert(words.end(), options.args.begin(), options.args.end());
    for (char** e = environ; *e; ++e) {
      const std::string_view setting = *e;
      if (!options.env.contains(std::string(setting.substr(0, setting.find('=')))))
        settings.emplace_back(setting);
    }
    for (const auto& [name, value] : options.env) settings.emplace_back(name).append("=").append(value);
    for (std::string& word : words) argv.push_back(word.data());
    for (std::string& setting : settings) envp.push_back(setting.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
  }
};

void redirect(const std::filesystem::path& file, int to) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0 || ::dup2(fd, to) < 0) ::_exit(126);
}

[[noreturn]] void become(Image& image, const ProcessOptions& options, pid_t parent) {
  ::setpgid(0, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  redirect("/dev/null", STDIN_FILENO);
  redirect(options.output, STDOUT_FILENO);
  redirect(options.errors, STDERR_FILENO);
  if (!options.folder.empty() && ::chdir(options.folder.c_str()) != 0) ::_exit(126);
  if (options.user && (::setgid(options.user->second) != 0 || ::setuid(options.user->first) != 0))
    ::_exit(126);
  ::prctl(PR_SET_PDEATHSIG, options.death_signal);  // after setuid, which clears it
  if (::getppid() != parent) ::_exit(126);
  ::execvpe(image.argv[0], image.argv.data(), image.envp.data());
  ::_exit(127);
}

ExitStatus status_of(int raw) {
  return WIFSIGNALED(raw) ? ExitStatus{-1, WTERMSIG(raw)} : ExitStatus{WEXITSTATUS(raw), 0};
}

bool ends_within(pid_t pid, Millis deadline) {
  // glibc 2.36 declares pidfd_open() without C linkage.
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) return true;  // it is no more
  const MonoTime end = std::chrono::steady_clock::now() + deadline;
  int n = -1;
  do {
    const auto left = std::chrono::ceil<Millis>(end - std::chrono::steady_clock::now());
    pollfd p{fd, POLLIN, 0};
    n = ::poll(&p, 1, static_cast<int>(std::max<Millis::rep>(left.count(), 0)));
  } while (n < 0 && errno == EINTR);
  ::close(fd);
  return n > 0;
}

}  // namespace

Process::Process(const std::string& program, ProcessOptions options)
    : output_(options.output.empty() ? folder_ / "stdout" : options.output),
      errors_(options.errors.empty() ? folder_ / "stderr" : options.errors) {
  options.output = output_;
  options.errors = errors_;
  Image image{program, options};
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork for " + program + ": " + std::strerror(errno));
  if (pid_ == 0) become(image, options, parent);
  ::setpgid(pid_, pid_);  // here as well: whoever comes first
}

Process::~Process() {
  ::kill(-pid_, SIGKILL);
  if (!ended_) ::waitpid(pid_, nullptr, 0);
}

bool Process::running() {
  if (ended_) return false;
  int raw = 0;
  if (::waitpid(pid_, &raw, WNOHANG) != pid_) return true;
  ended_ = status_of(raw);
  return false;
}

void Process::kill(int signal) {
  if (running()) ::kill(signal == SIGKILL ? -pid_ : pid_, signal);
}

ExitStatus Process::wait(Millis deadline) {
  if (!ended_ && !ends_within(pid_, deadline)) {
    const std::string text = errors();
    throw std::runtime_error("process " + std::to_string(pid_) + " still runs after " +
                             std::to_string(deadline.count()) +
                             " ms; it said: " + text.substr(text.size() > 2000 ? text.size() - 2000 : 0));
  }
  if (!ended_) {
    int raw = 0;
    ::waitpid(pid_, &raw, 0);
    ended_ = status_of(raw);
  }
  return *ended_;
}

Finished run_program(const std::string& program, ProcessOptions options, Millis deadline) {
  Process process{program, std::move(options)};
  const ExitStatus status = process.wait(deadline);
  return {status, process.output(), process.errors()};
}

}  // namespace outbox::test
