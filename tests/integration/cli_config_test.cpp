#include <doctest/doctest.h>

#include <algorithm>

#include "cli.hpp"

using namespace outbox::test;

namespace {

const std::string uri = "postgresql://u:hush@127.0.0.1:9/d";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("config check says that a file is valid, and nothing on standard error") {
  const CliFolder folder(one_pipeline(uri));
  const auto done = folder.outboxd({"config", "check"});
  CHECK(done.status == ExitStatus{0, 0});
  CHECK(
      done.output.starts_with("outboxd.yaml: valid\npipeline payments: public.outbox_msg to 127.0.0.1:9\n"));
  CHECK(done.errors.empty());
}

TEST_CASE("every command that reads a wrong file names all its faults and answers 2") {
  const CliFolder folder("pipelines:\n  - name: p\n    source: { mode: notfy, lanes: 0 }\n");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"config", "check"}, {"config", "show"}, {"run"}, {"status"}, {"migrate"}}) {
    auto args = command;
    args.insert(args.end(), {"-c", folder.file()});
    const auto done = folder.outboxd(args);
    CHECK_MESSAGE(done.status.code == 2, command.front());
    CHECK(std::ranges::count_if(done.errors, [](char c) { return c == '\n'; }) == 4);
    CHECK(has(done.errors, "outboxd.yaml:3:21: pipelines[p].source.mode: `notfy` is none of"));
  }
}

TEST_CASE("what only libpq and librdkafka can judge is judged before anything starts, with its place") {
  const CliFolder folder(R"(pipelines:
  - name: p
    postgres: { uri: "postgresql://u:hush@[bad" }
    source: { table: a.b.c }
    kafka: { bootstrap.servers: b, lingr.ms: 5, security.protocol: foo, acks: 1 }
)");
  const auto refused = folder.outboxd({"run"});
  CHECK(refused.status == ExitStatus{2, 0});
  CHECK(has(refused.errors, "5:73: pipelines[p].kafka.acks: `1` is refused: "));
  folder.write("outboxd.yaml", R"(pipelines:
  - name: p
    postgres: { uri: "postgresql://u:hush@[bad" }
    source: { table: a.b.c, partition_column: a.b }
    kafka: { bootstrap.servers: b, lingr.ms: 5, security.protocol: foo }
)");
  const auto done = folder.outboxd({"run"});
  CHECK(done.status == ExitStatus{2, 0});
  CHECK(has(done.errors, "outboxd.yaml:3:22: pipelines[p].postgres.uri: "));
  CHECK(has(done.errors, "outboxd.yaml:4:22: pipelines[p].source.table: "));
  CHECK(has(done.errors, "outboxd.yaml:4:47: pipelines[p].source.partition_column: name 'a.b': more than"));
  CHECK(
      has(done.errors,
          "outboxd.yaml:5:46: pipelines[p].kafka.lingr.ms: librdkafka says: No such configuration property"));
  CHECK(has(done.errors,
            "outboxd.yaml:5:68: pipelines[p].kafka.security.protocol: librdkafka says: Invalid value"));
  CHECK_FALSE(has(done.errors, "hush"));
}

TEST_CASE("a bound on attempts is refused where attempts are not counted") {
  const CliFolder folder(one_pipeline(uri, "    delivery: exactly_once\n    publish: { max_attempts: 3 }\n"));
  const auto refused = folder.outboxd({"config", "check"});
  CHECK(refused.status == ExitStatus{2, 0});
  CHECK(has(refused.errors, "publish.max_attempts: attempts are not counted with delivery: exactly_once"));
  folder.write("outboxd.yaml", one_pipeline(uri, "    publish: { max_attempts: 3 }\n"));
  CHECK(folder.outboxd({"config", "check"}).status.code == 0);
}

TEST_CASE("two places that name a row's partition are refused") {
  const CliFolder folder(
      one_pipeline(uri, "    source: { partition_column: a }\n    publish: { partition_header: b }\n"));
  const auto refused = folder.outboxd({"config", "check"});
  CHECK(refused.status == ExitStatus{2, 0});
  CHECK(has(refused.errors,
            "source.partition_column: publish.partition_header names a row's partition as well"));
  folder.write("outboxd.yaml", one_pipeline(uri, "    source: { partition_column: a }\n"));
  CHECK(folder.outboxd({"config", "check"}).status.code == 0);
}

TEST_CASE("config check reminds of what a choice gives up") {
  const CliFolder folder(one_pipeline(uri, "    source: { after_sent: delete, on_dead: continue }\n"));
  const auto done = folder.outboxd({"config", "check"});
  CHECK(has(done.output, "after_sent: delete gives up replay"));
  CHECK(has(done.output, "on_dead: continue lets later messages"));
}

TEST_CASE("config show masks secrets and its output is a configuration again") {
  const CliFolder folder(one_pipeline(uri));
  const auto shown = folder.outboxd({"config", "show"});
  CHECK(shown.status.code == 0);
  CHECK_FALSE(has(shown.output, "hush"));
  CHECK(has(shown.output, "uri: \"postgresql://u:****@127.0.0.1:9/d\"  # line 3\n"));
  folder.write("again.yaml", shown.output);
  CHECK(folder.outboxd({"config", "check", "-c", folder.file("again.yaml")}).status.code == 0);
}

TEST_CASE("the printed sample is a configuration") {
  const CliFolder folder;
  folder.write("outboxd.yaml", folder.outboxd({"config", "sample"}).output);
  CHECK(folder.outboxd({"config", "check"}).status.code == 0);
}

TEST_CASE("without a file, a command says where it looked") {
  const CliFolder folder;
  const auto done = folder.outboxd({"run"});
  CHECK(done.status == ExitStatus{2, 0});
  CHECK(has(done.errors, "neither ./outboxd.yaml nor /etc/outboxd/outboxd.yaml"));
  const auto named = folder.outboxd({"run", "-c", "none.yaml"});
  CHECK(named.status == ExitStatus{2, 0});
  CHECK(named.errors == "none.yaml: cannot be read: No such file or directory\n");
}

TEST_CASE("a mistake on the command line answers 2, help answers 0") {
  const CliFolder folder;
  CHECK(folder.outboxd({}).status.code == 2);
  CHECK(folder.outboxd({"rnu"}).status.code == 2);
  CHECK(folder.outboxd({"run", "--what"}).status.code == 2);
  CHECK(folder.outboxd({"migrate", "--body-type", "xml"}).status.code == 2);
  const auto help = folder.outboxd({"--help"});
  CHECK(help.status.code == 0);
  CHECK(has(help.output, "  2  the command line or the configuration is wrong"));
  CHECK(folder.outboxd({"run", "--help"}).status.code == 0);
}

TEST_CASE("version names outboxd and its libraries") {
  const auto done = CliFolder().outboxd({"version"});
  CHECK(done.status.code == 0);
  for (const char* name :
       {"outboxd ", "libpq ", "librdkafka ", "yaml-cpp ", "spdlog ", "Boost ", "compiler "}) {
    CHECK_MESSAGE(has(done.output, name), name);
  }
}
