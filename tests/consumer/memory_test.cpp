// What waits in memory is bounded in bytes, whatever lies in Kafka.

#include <doctest/doctest.h>

#include <sstream>

#include "ledger.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

/// The most memory that a process ever had resident, in megabytes.
std::int64_t peak_mb(const Process& process) {
  std::istringstream status(read_file("/proc/" + std::to_string(process.pid()) + "/status"));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) / 1024;
  return 0;
}

}  // namespace

TEST_CASE("150 MB wait behind a failing message: the process holds its buffers' limits, not the topic") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return;  // a sanitizer's own memory is none of ours
#endif
  Ledger ledger(1);
  for (int i = 0; i < 15; ++i)
    test::send(ledger.kafka, ledger.topic,
               std::vector<Letter>(100, letter(v7(i), std::string(100'000, 'x'))));
  // One fails and waits for its next try, with its partition paused; the other does not come back from its
  // handler, so that everything fills up behind it.
  Process fails(OUTBOX_LEDGER_CONSUMER,
                ledger.options("20", {"--batch-rows", "500", "--broken-offset", "0"}));
  Process hangs(OUTBOX_LEDGER_CONSUMER, ledger.options("20", {"--batch-rows", "500", "--stuck-offset", "0",
                                                              "--name", "stuck-" + ledger.topic}));
  INFO("peak: ", peak_mb(fails), " MB ", fails.errors(), "peak: ", peak_mb(hangs), " MB ", hangs.errors());
  eventually(
      "it fails", [&] { return fails.errors().find("message_failed") != std::string::npos; }, Millis{40'000});
  eventually(
      "it is full", [&] { return peak_mb(hangs) > 45; }, Millis{40'000});
  CHECK_FALSE(happens_within(Millis{4000}, [&] { return peak_mb(fails) > 120 || peak_mb(hangs) > 120; }));
}
