#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "relay/log/log.hpp"
#include "relay/log/repeats.hpp"

using namespace outbox;
using namespace outbox::log;

namespace {

struct Flood {
  Flood() {
    plain =
        Logger(Level::debug, Format::text, [this](Level, const std::string& line) { lines.push_back(line); });
    logger = plain.limited({.lines_max = 2, .window = Millis{1000}}, [this] { return now; });
  }
  MonoTime now{};
  std::vector<std::string> lines{};
  Logger plain{};
  Logger logger{};
};

}  // namespace

TEST_CASE(
    "a flood of one warning is cut after its first lines, and the next window tells how many there were") {
  Flood flood;
  for (int i = 0; i < 100; ++i) flood.logger.warn("message_dead", {{"row", i}});
  CHECK(flood.lines == std::vector<std::string>{"message_dead row=0", "message_dead row=1"});
  flood.now += Millis{1000};
  flood.logger.warn("message_dead", {{"row", 100}});
  CHECK(flood.lines.back() == "message_dead row=100 left_out=98");
  flood.logger.warn("message_dead", {{"row", 101}});
  CHECK(flood.lines.back() == "message_dead row=101");
}

TEST_CASE("a flood that ends is told by tell_repeats, once") {
  Flood flood;
  for (int i = 0; i < 5; ++i) flood.logger.error("stuck");
  flood.logger.tell_repeats();
  CHECK(flood.lines.size() == 2);
  flood.now += Millis{1000};
  flood.logger.tell_repeats();
  flood.logger.tell_repeats();
  CHECK(flood.lines == std::vector<std::string>{"stuck", "stuck", "lines_left_out of=stuck count=3"});
}

TEST_CASE("pipelines and events do not cut each other short, and changes of state are always written") {
  Flood flood;
  const Logger a = flood.logger.with("pipeline", "a");
  const Logger b = flood.logger.with("pipeline", "b");
  for (int i = 0; i < 3; ++i) {
    a.warn("mark_failed");
    b.warn("mark_failed");
    a.warn("claim_failed");
    a.info("paused");
    a.debug("draining");
  }
  CHECK(flood.lines.size() == 2 + 2 + 2 + 3 + 3);
}

TEST_CASE("what is told apart is bounded: an event beyond is written, and costs no memory") {
  Repeats repeats({.lines_max = 1, .window = Millis{1000}, .events_max = 2});
  const MonoTime now{};
  for (int i = 0; i < 3; ++i)
    for (const char* event : {"a", "b", "c"})
      CHECK(repeats.seen(event, now).write == (i == 0 || event[0] == 'c'));
}
