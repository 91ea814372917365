#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include "config_fixture.hpp"

using namespace outbox::config;
using namespace std::chrono_literals;
namespace relay = outbox::relay;

TEST_CASE("the contract file works as it is") {
  const auto loaded = parse(R"(pipelines:
  - name: payments
    postgres: { uri: "postgresql://outbox_relay@127.0.0.1:5432/payments" }
    source:   { mode: notify, table: public.outbox_msg, poll_interval: 250ms }
    kafka:    { bootstrap.servers: "127.0.0.1:9092" }
)",
                            Outside{}.surroundings());
  REQUIRE(loaded);
  const Pipeline& p = loaded->config.pipelines.at(0);
  CHECK(p.name == "payments");
  CHECK(p.postgres.uri == "postgresql://outbox_relay@127.0.0.1:5432/payments");
  CHECK(p.postgres.connections == 3);
  CHECK(p.source.mode == Mode::notify);
  CHECK(p.source.table == "public.outbox_msg");
  CHECK(p.source.poll_interval == 250ms);
  CHECK(p.source.lanes == 8);
  CHECK(p.source.batch_bytes == 8 << 20);
  CHECK(p.lease.ttl == 5s);
  CHECK(p.kafka == std::map<std::string, std::string>{{"bootstrap.servers", "127.0.0.1:9092"}});
  CHECK(loaded->config.shutdown.timeout == 10s);
}

TEST_CASE("every word of every choice means the enum of its name") {
  const auto with = [](const std::string& more) {
    const auto loaded = parse(smallest(more), Outside{}.surroundings());
    REQUIRE(loaded);
    return loaded->config.pipelines.at(0);
  };
  CHECK(with("    source: { mode: poll }\n").source.mode == Mode::poll);
  CHECK(with("    source: { mode: notify }\n").source.mode == Mode::notify);
  CHECK(with("    source: { after_sent: mark }\n").source.after_sent == relay::AfterSent::mark);
  CHECK(with("    source: { after_sent: delete }\n").source.after_sent == relay::AfterSent::erase);
  CHECK(with("    source: { on_dead: hold_key }\n").source.on_dead == relay::OnDead::hold_key);
  CHECK(with("    source: { on_dead: continue }\n").source.on_dead == relay::OnDead::let_pass);
  CHECK(with("    publish: { headers: plain }\n").publish.headers == relay::HeaderPreset::plain);
  CHECK(with("    publish: { headers: cloudevents }\n").publish.headers == relay::HeaderPreset::cloudevents);
  CHECK(with("    publish: { tracestate: pass }\n").publish.tracestate == relay::Tracestate::pass);
  CHECK(with("    publish: { tracestate: stamp }\n").publish.tracestate == relay::Tracestate::stamp);
  CHECK(with("    publish: { headers: debezium }\n").publish.headers == relay::HeaderPreset::debezium);
  CHECK(with("    delivery: at_least_once\n").delivery == Delivery::at_least_once);
  const auto log = [](const std::string& level, const std::string& format) {
    const auto loaded = parse(smallest("", "log: { level: " + level + ", format: " + format + " }\n"),
                              Outside{}.surroundings());
    REQUIRE(loaded);
    return std::pair{loaded->config.log.level, loaded->config.log.format};
  };
  CHECK(log("debug", "text") == std::pair{LogLevel::debug, LogFormat::text});
  CHECK(log("info", "json") == std::pair{LogLevel::info, LogFormat::json});
  CHECK(log("warn", "json") == std::pair{LogLevel::warn, LogFormat::json});
  CHECK(log("error", "json") == std::pair{LogLevel::error, LogFormat::json});
}

TEST_CASE("a section whose every line is commented out has its defaults") {
  CHECK(faults_of(smallest("    source:\n      # mode: poll\n", "log:\n")) == "");
}

TEST_CASE("a typo in an enum is named with the word that was meant") {
  CHECK(faults_of(smallest("    source: { mode: notfy }\n")) ==
        "f:5:21: pipelines[payments].source.mode: `notfy` is none of poll, notify; did you mean notify?\n");
}

TEST_CASE("an unknown key is refused with what was meant, or where it belongs, or what there is") {
  CHECK(faults_of(smallest("    source: { pol_interval: 1s }\n")) ==
        "f:5:15: pipelines[payments].source.pol_interval: is not an option here; did you mean "
        "`poll_interval`?\n");
  CHECK(faults_of(smallest("    lanes: 4\n")) ==
        "f:5:5: pipelines[payments].lanes: is not an option here; it belongs under `source`\n");
  CHECK(faults_of(smallest("", "zzz: 4\n")) ==
        "f:1:1: zzz: is not an option here; there are instance, log, shutdown, admin, pipelines\n");
  CHECK(faults_of(smallest("    source.mode: poll\n")) ==
        "f:5:5: pipelines[payments].source.mode: is not an option here; it belongs under `source`\n");
}

TEST_CASE("a duplicate key is refused, at any depth") {
  CHECK(faults_of(smallest("    source: { mode: poll, lanes: 4, mode: notify }\n")) ==
        "f:5:37: mode: stands here a second time (first in line 5): keep one of them\n");
  CHECK(faults_of(smallest("    name: again\n")) ==
        "f:5:5: name: stands here a second time (first in line 2): keep one of them\n");
  CHECK(faults_of("log: {}\nlog: {}\n" + smallest()) ==
        "f:2:1: log: stands here a second time (first in line 1): keep one of them\n");
}

TEST_CASE("a tab in the indentation is refused where it stands, each of them") {
  CHECK(faults_of("pipelines:\n\t- name: x\n  \t  y: 1\n") ==
        "f:2:1: a tab in the indentation: YAML wants spaces\n"
        "f:3:3: a tab in the indentation: YAML wants spaces\n");
}

TEST_CASE("a file that holds nothing is refused") {
  for (const char* empty : {"", "\n\n", "# only a comment\n", "---\n", "~\n"}) {
    CHECK(faults_of(empty) == "f: is empty; `outboxd config sample` prints a file to start from\n");
  }
}

TEST_CASE("a value of the wrong type is refused") {
  CHECK(
      faults_of(smallest("    source: { table: [a], lanes: many, poll_interval: { a: 1 } }\n")) ==
      "f:5:22: pipelines[payments].source.table: expects text, not a list\n"
      "f:5:34: pipelines[payments].source.lanes: `many` is not a whole number\n"
      "f:5:55: pipelines[payments].source.poll_interval: expects a duration such as 250ms, not a mapping\n");
  CHECK(faults_of(smallest("    source: poll\n")) ==
        "f:5:13: pipelines[payments].source: must be a mapping, not a single value\n");
  CHECK(
      faults_of(smallest("    source:\n      lanes:\n")) ==
      "f:6:7: pipelines[payments].source.lanes: has no value: write a whole number, or leave the line out\n");
  CHECK(faults_of("pipelines: { name: x }\n") ==
        "f:1:12: pipelines: must be a list (`- name: …`), not a mapping\n");
  CHECK(faults_of("pipelines: [ 5 ]\n") == "f:1:14: pipelines[1]: must be a mapping, not a single value\n");
  CHECK(faults_of("[]\n") == "f:1:1: must be a mapping with `pipelines:`, not a list\n");
}

TEST_CASE("a value out of bounds is refused with the bounds") {
  CHECK(faults_of(smallest("    source: { poll_interval: 9ms }\n")) ==
        "f:5:30: pipelines[payments].source.poll_interval: `9ms` is out of bounds: 10ms to 60s\n");
  CHECK(faults_of(smallest("    source: { lanes: 65 }\n    postgres: { connections: 1 }\n"))
            .find("`65` is out of bounds: 1 to 64") != std::string::npos);
  CHECK(faults_of(smallest("    source: { lanes: 64, poll_interval: 1m }\n")) == "");
  CHECK(faults_of(smallest("    source: { lanes: -1 }\n")).find("`-1` is not a whole number") !=
        std::string::npos);
  CHECK(faults_of(smallest("    source: { lanes: 99999999999999999999 }\n")).find("is not a whole number") !=
        std::string::npos);
  CHECK(faults_of(smallest("    source: { batch_bytes: 9000000000GiB }\n")).find("is not a size") !=
        std::string::npos);
}

TEST_CASE("what is required and missing is named where it should stand") {
  CHECK(faults_of("pipelines:\n  - source: { mode: poll }\n") ==
        "f:2:5: pipelines[1].name: is missing\n"
        "f:2:5: pipelines[1].postgres.uri: is missing\n"
        "f:2:5: pipelines[1].kafka.bootstrap.servers: is missing\n");
  CHECK(faults_of("log: {}\n") == "f:1:1: pipelines: is missing: it lists at least one `- name: …`\n");
  CHECK(faults_of("pipelines: []\n") == "f:1:1: pipelines: is missing: it lists at least one `- name: …`\n");
}

TEST_CASE("all faults are reported at once, in the file's order") {
  const std::string faults = faults_of(R"(log: { level: inf }
pipelines:
  - name: a b
    postgres: { urii: x }
    source: { mode: notfy, mode: poll, lanes: 0 }
    kafka: { acks: 1 }
)");
  CHECK(std::ranges::count(faults, '\n') == 9);
  CHECK(faults.starts_with("f:1:15: log.level:"));
  CHECK(faults.find("acks: `1` is refused: a row may be marked only after") != std::string::npos);
}

TEST_CASE("names of pipelines are unique, and so are their tables") {
  const std::string twice = smallest() + R"(  - name: payments
    postgres: { uri: "postgresql://other/db" }
    kafka:    { bootstrap.servers: "127.0.0.1:9092" }
)";
  CHECK(faults_of(twice) == "f:5:11: pipelines[payments].name: is the name of another pipeline (line 2)\n");
  const std::string same_table = smallest() + R"(  - name: ledger
    postgres: { uri: "postgresql://outbox_relay@127.0.0.1:5432/payments" }
    kafka:    { bootstrap.servers: "127.0.0.1:9092" }
)";
  CHECK(faults_of(same_table) ==
        "f:5:11: pipelines[ledger].source.table: is read by pipelines[payments] already\n");
}

TEST_CASE("a batch larger than what may be in flight is refused") {
  CHECK(faults_of(smallest("    source: { batch_bytes: 65MiB }\n"))
            .find("is more than publish.in_flight_bytes") != std::string::npos);
  CHECK(faults_of(smallest("    publish: { in_flight_rows: 4999 }\n"))
            .find("f:5:32: pipelines[payments].source.batch_rows: is more") == 0);
}

TEST_CASE("YAML that hides things is refused: anchors, a second document, keys that are no words") {
  CHECK(faults_of("a: &x 1\nb: *x\n").find("f:2:4: anchors and aliases are not read here") !=
        std::string::npos);
  CHECK(faults_of(smallest() + "---\nlog: {}\n").find(": a second document begins") != std::string::npos);
  CHECK(faults_of("? [x]\n: 3\n" + smallest()) == "f:1:3: a key must be a word\n");
}

TEST_CASE("a syntax error has its place") {
  CHECK(faults_of("pipelines: [1\nb: }\n").find("f:2:") == 0);
  CHECK(faults_of("pipelines:\n  - name: x\n name: y\n").find("f:3:") == 0);
  CHECK(faults_of(std::string(200'000, '[')).find("is not YAML") != std::string::npos);
  CHECK(faults_of(std::string(2 << 20, '#')) == "f: is larger than 1MiB\n");
}

TEST_CASE("a fault stays on one line, and shows only the beginning of an endless value") {
  const std::string faults =
      faults_of(smallest("    source: { mode: \"a\\nb" + std::string(5000, 'x') + "\" }\n"));
  CHECK(std::ranges::count(faults, '\n') == 1);
  CHECK(faults.size() < 300);
}

TEST_CASE("what a parser or a file name puts into a fault starts no line and moves no cursor") {
  const Fault fault{.place = {3, 1}, .path = "a\tb", .message = "unknown escape character: \n\x1b[2J\x7f"};
  CHECK(fault.text("f\r") == "f\\x0d:3:1: a\\x09b: unknown escape character: \\x0a\\x1b[2J\\x7f");
}

TEST_CASE("a file that cannot be read is one fault") {
  const auto loaded = load_file("/nonexistent/outboxd.yaml", Outside{}.surroundings());
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().at(0).text("f") == "f: cannot be read: No such file or directory");
}
