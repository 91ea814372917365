// C11 threads made of POSIX threads, for builds with the thread sanitizer alone: it knows threads by
// pthread_create, and librdkafka makes its own by thrd_create, whose first allocation would then crash.
// librdkafka itself is not instrumented: run such builds with TSAN_OPTIONS=suppressions=cmake/tsan.supp.
#include <pthread.h>
#include <threads.h>

#include <cstdint>
#include <memory>

namespace {

struct Start {
  thrd_start_t run;
  void* argument;
};

void* run(void* raw) {
  const std::unique_ptr<Start> start{static_cast<Start*>(raw)};
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(start->run(start->argument)));
}

}  // namespace

extern "C" int thrd_create(thrd_t* thread, thrd_start_t function, void* argument) {
  auto start = std::make_unique<Start>(Start{function, argument});
  if (pthread_create(thread, nullptr, run, start.get()) != 0) return thrd_error;
  (void)start.release();
  return thrd_success;
}

extern "C" int thrd_join(thrd_t thread, int* answer) {
  void* raw = nullptr;
  if (pthread_join(thread, &raw) != 0) return thrd_error;
  if (answer != nullptr) *answer = static_cast<int>(reinterpret_cast<std::intptr_t>(raw));
  return thrd_success;
}
