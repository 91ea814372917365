// What the daemon writes while it works: bounded, by priority, and a line about how it goes.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <sstream>

#include "tests/relay/rig.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

std::vector<std::string> lines_with(const std::string& text, std::string_view part) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.find(part) != std::string::npos) out.push_back(line);
  return out;
}

}  // namespace

TEST_CASE("under load a pipeline says in one line what it did, and an idle one says nothing") {
  RelayRig rig({.admin = std::string{admin_socket},
                .process = "  survey_interval: 1s\nlog: { summary_interval: 1s }\n"});
  const std::string topic = KafkaCluster::shared().new_topic("summary", 1);
  rig.start();
  rig.await("it works", [&] { return rig.logs().find("lanes_taken") != std::string::npos; });
  CHECK_FALSE(happens_within(Millis{2500}, [&] { return !lines_with(rig.logs(), " summary ").empty(); }));
  rig.ask("INSERT INTO outbox_msg (topic, body) SELECT $1, to_json(i) FROM generate_series(1, 500) i",
          pg::Params{}.text(topic));
  rig.eventually_none_pending();
  const auto sent = [&] {
    int out = 0;
    for (const std::string& line : lines_with(rig.logs(), " summary pipeline=rig sent="))
      out += std::stoi(line.substr(line.find("sent=") + 5));
    return out;
  };
  rig.await("the summaries have all of it", [&] { return sent() == 500; });
  CHECK(lines_with(rig.logs(), " summary ").front().find(" verdict=ready") != std::string::npos);
}

TEST_CASE("a flood of dead messages is ten lines and a count, and every one of them is dead") {
  RelayRig rig({.process = "log: { summary_interval: 1s }\n"});
  const std::string topic = KafkaCluster::shared().new_topic("flood", 1);
  rig.ask(
      "INSERT INTO outbox_msg (topic, body, headers) SELECT $1, '1', '{\"outbox-id\": \"forged\"}' "
      "FROM generate_series(1, 50)",
      pg::Params{}.text(topic));
  rig.start();
  rig.await("all are dead", [&] { return rig.count("DEAD") == "50"; });
  CHECK(lines_with(rig.logs(), " message_dead ").size() == 10);
}

TEST_CASE("where standard error is the journal, each line begins with its priority, and nowhere else") {
  const TemporaryDirectory folder{"outbox-journal"};
  const auto written = [&](const std::string& stream) {
    const auto file = folder / "journal";
    write_file(file, "");
    struct stat found {};
    REQUIRE(::stat(file.c_str(), &found) == 0);
    const std::string its_own = std::to_string(found.st_dev) + ":" + std::to_string(found.st_ino);
    write_file(folder / "outboxd.yaml",
               "admin: { listen: 'off' }\npipelines:\n  - name: p\n    postgres: { uri: "
               "\"postgresql://u@127.0.0.1:9/d\" }\n    kafka: { bootstrap.servers: \"127.0.0.1:9\" }\n");
    Process relay(OUTBOXD_PROGRAM, {.args = {"run", "-c", (folder / "outboxd.yaml").string()},
                                    .env = {{"JOURNAL_STREAM", stream.empty() ? its_own : stream}},
                                    .errors = file});
    eventually("a warning and a note", [&] {
      return !lines_with(read_file(file), "database_unreachable").empty() &&
             !lines_with(read_file(file), "postgres_down").empty();
    });
    relay.kill(SIGTERM);
    relay.wait();
    return read_file(file);
  };
  const std::string journal = written("");
  for (const std::string& line : lines_with(journal, "")) {
    CAPTURE(line);
    const bool warning = line.find(" warn") != std::string::npos;
    CHECK(line.starts_with(warning ? "<4>2" : "<6>2"));
  }
  CHECK_FALSE(lines_with(journal, "<4>").empty());
  CHECK_FALSE(lines_with(journal, "<6>").empty());
  CHECK(written("1:2").find("<4>") == std::string::npos);
}
