#include <doctest/doctest.h>

#include "config_fixture.hpp"
#include "relay/config/changes.hpp"
#include "relay/config/options.hpp"

using namespace outbox;
using namespace outbox::config;

namespace {

Config config_of(const std::string& yaml) {
  const Outside outside;
  return parse(yaml, outside.surroundings()).value().config;
}

std::string said(const std::vector<std::string>& options) {
  std::string out;
  for (const auto& option : options) out.append(out.empty() ? "" : " ").append(option);
  return out;
}

}  // namespace

TEST_CASE("the same file changes nothing, also where the process made its own instance name") {
  Config running = config_of(smallest());
  running.instance = "host:1-abc";
  CHECK(changes(running, config_of(smallest())).none());
}

TEST_CASE("a changed option is live where the table says so, and needs a restart otherwise") {
  const Config was = config_of(smallest());
  const Config is = config_of(smallest("    lease: { ttl: 9s }\n", "log: { level: debug, format: json }\n"));
  const Changes changed = changes(was, is);
  CHECK(said(changed.live) == "log.level");
  CHECK(said(changed.restart) == "log.format pipelines[payments].lease.ttl");
}

TEST_CASE("pipelines that come, go or get another cluster need a restart") {
  const Config one = config_of(smallest());
  Config other = one;
  other.pipelines.front().name = "refunds";
  CHECK(said(changes(one, other).restart) == "pipelines[payments] (removed) pipelines[refunds] (added)");
  Config moved = one;
  moved.pipelines.front().kafka = {{"bootstrap.servers", "other:9092"}, {"linger.ms", "5"}};
  CHECK(said(changes(one, moved).restart) ==
        "pipelines[payments].kafka.bootstrap.servers pipelines[payments].kafka.linger.ms");
  CHECK(said(changes(moved, one).restart) ==
        "pipelines[payments].kafka.bootstrap.servers pipelines[payments].kafka.linger.ms");
}

TEST_CASE("with_live takes every live option and no other") {
  const Config was = config_of(smallest());
  const Config is =
      config_of(smallest("    lease: { ttl: 9s }\n",
                         "log: { level: debug, format: json }\nadmin: { topics_max: 7, listen: 'off' }\n"));
  const Config now = with_live(was, is);
  CHECK(now.log.level == LogLevel::debug);
  CHECK(now.admin.topics_max == 7);
  CHECK(now.log.format == was.log.format);
  CHECK(now.admin.listen == was.admin.listen);
  CHECK(now.pipelines == was.pipelines);
  CHECK(changes(now, is).live.empty());
}
