#include "examples/demo/stage.hpp"

#include <cstdlib>

#include "examples/demo/bank.hpp"
#include "examples/demo/ledger.hpp"
#include "relay/commands/migrate/migrate.hpp"

namespace demo {
namespace {

using outbox::pg::Session;
using outbox::test::eventually;
using outbox::test::KafkaCluster;
using outbox::test::KafkaKind;
using outbox::test::must;
using outbox::test::read_file;
using outbox::test::write_file;

// The mock cluster keeps about 5 MB a partition and drops what is older in silence: eight take all that
// 60,000 transfers tell (main.cpp bounds them), even if nobody reads until the end.
constexpr int partitions = 8;

std::filesystem::path own_program() {
  return std::filesystem::read_symlink("/proc/self/exe");
}

void make_outbox(Session& owner) {
  must(outbox::relay::migrate(owner, {}));
  must(outbox::relay::apply_grants(owner, {}));
}

}  // namespace

Stage::Stage(const DemoOptions& options) {
  start_kafka(options);
  make_databases(options);
  write_config();
  prepare_programs(options);
  lag_ = std::make_unique<GroupLag>(kafka_->bootstrap(), ledger_group(topic_), topic_, partitions);
}

void Stage::start_kafka(const DemoOptions& options) {
  if (options.kafka == "real") {
    kafka_ = std::make_unique<KafkaCluster>(outbox::test::KafkaOptions{.kind = KafkaKind::real});
    kafka_said_ = "a real broker of its own at " + kafka_->bootstrap();
  } else if (options.kafka == "embedded") {
    const std::string topic = topic_ + ":" + std::to_string(partitions);
    mock_kafka_ = std::make_unique<Program>("kafka", own_program().parent_path() / "outbox-mock-kafka",
                                            std::vector<std::string>{"--topic", topic}, folder_.path());
    mock_kafka_->start();
    const auto said = [&] { return read_file(folder_ / "kafka.1.out"); };
    eventually("the mock cluster's start", [&] { return mock_kafka_->running() && said().ends_with("\n"); });
    const std::string bootstrap = said();
    ::setenv("OUTBOX_TEST_KAFKA", bootstrap.substr(0, bootstrap.size() - 1).c_str(), 1);
    kafka_ = std::make_unique<KafkaCluster>(outbox::test::KafkaOptions{.kind = KafkaKind::external});
    kafka_said_ = "librdkafka's mock cluster at " + kafka_->bootstrap();
    return;  // the topic is there
  } else {
    ::setenv("OUTBOX_TEST_KAFKA", options.kafka.c_str(), 1);
    kafka_ = std::make_unique<KafkaCluster>(outbox::test::KafkaOptions{.kind = KafkaKind::external});
    kafka_said_ = "yours at " + kafka_->bootstrap();
  }
  kafka_->create_topic(topic_, partitions);
}

void Stage::make_databases(const DemoOptions& options) {
  Session server = must(Session::connect({.uri = postgres_.uri()}));
  must(server.exec("CREATE DATABASE bank"));
  must(server.exec("CREATE DATABASE ledger"));
  Session bank = bank_session();
  make_outbox(bank);
  open_bank(bank, options.accounts);
  Session ledger = ledger_session();
  make_outbox(ledger);
  open_ledger(ledger, options.accounts);
}

void Stage::write_config() const {
  write_file(folder_ / "outboxd.yaml",
             "pipelines:\n"
             "  - name: demo\n"
             "    postgres: { uri: \"" +
                 postgres_.uri("bank", "outbox_relay") +
                 "\" }\n"
                 "    source:   { mode: notify, table: public.outbox_msg, poll_interval: 250ms }\n"
                 "    kafka:    { bootstrap.servers: \"" +
                 kafka_->bootstrap() + "\" }\n");
}

void Stage::prepare_programs(const DemoOptions& options) {
  const std::string self = own_program();
  const auto number = [](auto n) { return std::to_string(n); };
  core_ = std::make_unique<Program>(
      "core", self,
      std::vector<std::string>{"core", "--postgres", postgres_.uri("bank", "bank"), "--topic", topic_,
                               "--transfers", number(options.transfers), "--accounts",
                               number(options.accounts), "--connections", number(options.connections),
                               "--rate", number(options.rate), "--seed", number(options.seed)},
      folder_.path());
  relay_ = std::make_unique<Program>("outboxd", own_program().parent_path() / "outboxd",
                                     std::vector<std::string>{"run", "-c", folder_ / "outboxd.yaml"},
                                     folder_.path());
  const int session_timeout_ms = options.kafka == "embedded" ? 3000 : 6000;
  ledger_ = std::make_unique<Program>(
      "ledger", self,
      std::vector<std::string>{"ledger", "--postgres", postgres_.uri("ledger", "ledger"), "--kafka",
                               kafka_->bootstrap(), "--topic", topic_, "--session-timeout",
                               number(session_timeout_ms)},
      folder_.path());
}

Session Stage::bank_session() const {
  return must(Session::connect({.uri = postgres_.uri("bank")}));
}
Session Stage::ledger_session() const {
  return must(Session::connect({.uri = postgres_.uri("ledger")}));
}

std::vector<outbox::test::KafkaRecord> Stage::records() {
  return kafka_->read_all(topic_);
}

}  // namespace demo
