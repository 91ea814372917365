#include "tests/support/crash_trace.hpp"

#include <execinfo.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstring>

namespace outbox::test {
namespace {

constexpr std::size_t frames_max = 64;
constexpr std::size_t stack_bytes = 64UL << 10;  // on which the main thread tells that its own has run out

// The sanitizers tell of a bad address better than this does.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::array signals{SIGABRT};
#else
constexpr std::array signals{SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
#endif

const char* (*what_is_tested)() noexcept = nullptr;
std::array<std::byte, stack_bytes> own_stack;

void say(const char* text) noexcept {
  if (text != nullptr) static_cast<void>(!::write(STDERR_FILENO, text, std::strlen(text)));
}

// Async-signal-safe: write(), sigabbrev_np() and the backtrace of a library that is already loaded.
void tell(int signal) noexcept {
  say("\ncrash: SIG");
  say(sigabbrev_np(signal));
  const char* doing = what_is_tested != nullptr ? what_is_tested() : nullptr;
  say(doing != nullptr ? " in the test case: " : " outside of a test case");
  say(doing);
  say("\n");
  std::array<void*, frames_max> frames{};
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  backtrace_symbols_fd(frames.data(), count, STDERR_FILENO);
  say("crash: `addr2line -Cfpie PROGRAM +OFFSET` names what has no name here\n");
  std::raise(signal);  // by its default now: SA_RESETHAND
}

}  // namespace

void trace_crashes(const char* (*doing)() noexcept) noexcept {
  what_is_tested = doing;
  std::array<void*, 1> first{};
  backtrace(first.data(), 1);  // loads what it needs, which a handler must not
  stack_t stack{};
  stack.ss_sp = own_stack.data();
  stack.ss_size = own_stack.size();
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = tell;
  action.sa_flags = static_cast<int>(SA_ONSTACK | SA_NODEFER | SA_RESETHAND);
  for (const int signal : signals) sigaction(signal, &action, nullptr);
}

}  // namespace outbox::test
