// The soak: a bank under load, three relays, two services and three brokers, and for minutes one fault after
// the other, drawn from a seed. After each round everything is healed, and money and order must hold.
//
// OUTBOX_SOAK_MINUTES: how long (10). OUTBOX_CRASH_SEED: which faults; printed.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <random>
#include <set>

#include "bank.hpp"
#include "oracle.hpp"
#include "relay/commands/migrate/migrate.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/fault_proxy.hpp"
#include "tests/support/kafka.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

constexpr int relays = 3;
constexpr int brokers = 3;
constexpr std::int64_t round_transfers = 3000;
constexpr Millis patient{180'000};

long from_environment(const char* name, long otherwise) {
  const char* set = std::getenv(name);
  return set != nullptr ? std::strtol(set, nullptr, 10) : otherwise;
}

class Soak {
 public:
  explicit Soak(std::uint64_t seed)
      : random_(seed),
        proxy_(static_cast<std::uint16_t>(std::stoi(database_.uri().substr(database_.uri().rfind(':') + 1)))),
        topic_(kafka_.new_topic("soak", 6)) {
    must(relay::migrate(session_, {}));
    bank_ = std::make_unique<Bank>(BankOptions{.postgres = database_.uri(), .topic = topic_});
    for (int n = 0; n < relays; ++n) start_relay(n);
    for (const char* member : {"first", "second"})
      services_.push_back(std::make_unique<Process>(
          OUTBOX_LEDGER_CONSUMER,
          ProcessOptions{.args = {"--postgres", database_.uri(), "--kafka", kafka_.bootstrap(), "--topic",
                                  topic_, "--name", topic_, "--commit-interval-ms", "50", "--kafka-property",
                                  std::string("group.instance.id=") + member}}));
    eventually(
        "the ledger's tables", [&] { return count("SELECT count(to_regclass('ledger_account'))") == 1; },
        patient);
  }

  /// One round of transfers, with faults all along; then all is healed, drained and judged.
  void round() {
    bank_->begin(round_transfers, random_());
    while (bank_->made() < round_transfers) {
      const auto& [name, strike] = strikes_.at(static_cast<std::size_t>(number(0, std::ssize(strikes_) - 1)));
      std::cerr << "soak: " << bank_->made() << " made, " << name << '\n';
      strike();
      const std::int64_t next = std::min(round_transfers, bank_->made() + number(50, 500));
      eventually(
          "transfers", [&] { return bank_->made() >= next; }, patient);
    }
    bank_->finish();
    heal();
    eventually(
        "all sent", [&] { return count("SELECT count(*) FROM outbox_msg WHERE status <> 'SENT'") == 0; },
        patient);
    const std::int64_t messages = count("SELECT 2 * count(*) FROM bank_transfer");
    eventually(
        "all applied", [&] { return count("SELECT count(*) FROM ledger_entry") >= messages; }, patient);
    REQUIRE(broken_money_laws(session_) == "");
    REQUIRE(broken_topic_laws(session_, kafka_.read_all(topic_)) == "");
  }

 private:
  std::ptrdiff_t number(std::ptrdiff_t low, std::ptrdiff_t high) {
    return std::uniform_int_distribution<std::ptrdiff_t>(low, high)(random_);
  }
  std::size_t some_relay() { return static_cast<std::size_t>(number(0, relays - 1)); }
  std::int64_t count(std::string_view sql) { return must(session_.exec(sql)).integer(0, 0); }

  void start_relay(int which) {
    std::string uri = database_.uri();
    const std::size_t colon = uri.rfind(':');
    uri.replace(colon + 1, uri.find('/', colon) - colon - 1, std::to_string(proxy_.port()));
    const auto file = folder_ / ("relay" + std::to_string(which) + ".yaml");
    write_file(
        file,
        "instance: relay" + std::to_string(which) +
            "\nadmin: { listen: \"off\" }\npipelines:\n  - name: soak\n    postgres: { uri: \"" + uri +
            "\", statement_deadline: 2s }\n    source: { poll_interval: 100ms }\n    lease: { ttl: 2s }\n"
            "    kafka: { bootstrap.servers: \"" +
            kafka_.bootstrap() + "\", socket.timeout.ms: 3000 }\n");
    relays_.at(static_cast<std::size_t>(which)) =
        std::make_unique<Process>(OUTBOXD_PROGRAM, ProcessOptions{.args = {"run", "-c", file.string()}});
  }
  void again(std::size_t which, int signal) {
    relays_[which]->kill(SIGCONT);
    relays_[which]->kill(signal);
    relays_[which]->wait(patient);
    start_relay(static_cast<int>(which));
  }
  void heal() {
    proxy_.heal();
    for (auto& relay : relays_) relay->kill(SIGCONT);
    for (int node = 1; node <= brokers; ++node) {
      if (dead_.erase(node) > 0) kafka_.start(node);
      if (frozen_.erase(node) > 0) kafka_.resume(node);
    }
  }
  /// At most one broker is away at a time: with two, writes are refused.
  void broker(std::set<int>& away, void (KafkaCluster::*strike)(int)) {
    heal();
    const int node = static_cast<int>(number(1, brokers));
    (kafka_.*strike)(node);
    away.insert(node);
  }
  void network(const Fault& fault) { proxy_.inflict(fault); }

  std::mt19937_64 random_;
  PostgresServer server_;
  TestDatabase database_{server_.uri()};
  pg::Session session_ = database_.session();
  KafkaCluster kafka_{{.brokers = brokers, .settings = {"broker.session.timeout.ms=3000"}}};
  FaultProxy proxy_;
  TemporaryDirectory folder_;
  std::string topic_;
  std::unique_ptr<Bank> bank_;
  std::array<std::unique_ptr<Process>, relays> relays_;
  std::vector<std::unique_ptr<Process>> services_;
  std::set<int> dead_, frozen_;
  const std::vector<std::pair<const char*, std::function<void()>>> strikes_{
      {"a relay is killed", [this] { again(some_relay(), SIGKILL); }},
      {"a relay is told to stop", [this] { again(some_relay(), SIGTERM); }},
      {"a relay is paused", [this] { relays_[some_relay()]->kill(SIGSTOP); }},
      {"relays go on",
       [this] {
         for (auto& relay : relays_) relay->kill(SIGCONT);
       }},
      {"connections to PostgreSQL are terminated",
       [this] {
         count(
             "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE "
             "'outboxd%'");
       }},
      {"connections to PostgreSQL are reset", [this] { network({.kind = Fault::Kind::reset}); }},
      {"connections to PostgreSQL are half-open", [this] { network({.kind = Fault::Kind::half_open}); }},
      {"PostgreSQL's answers are lost",
       [this] { network({.kind = Fault::Kind::blackhole, .toward = Toward::client}); }},
      {"PostgreSQL is slow",
       [this] { network({.kind = Fault::Kind::latency, .toward = Toward::both, .by = Millis{30}}); }},
      {"a broker is killed", [this] { broker(dead_, &KafkaCluster::kill); }},
      {"a broker is paused", [this] { broker(frozen_, &KafkaCluster::pause); }},
      {"all is healed", [this] { heal(); }},
  };
};

}  // namespace

TEST_CASE("random faults for minutes on end: money and order hold after each round") {
  if (!KafkaCluster::shared().real()) return;
  const auto seed = static_cast<std::uint64_t>(
      from_environment("OUTBOX_CRASH_SEED", static_cast<long>(std::random_device{}())));
  MESSAGE("OUTBOX_CRASH_SEED=" << seed);
  const MonoTime until =
      std::chrono::steady_clock::now() + std::chrono::minutes{from_environment("OUTBOX_SOAK_MINUTES", 10)};
  Soak soak(seed);
  int rounds = 0;
  do {
    CAPTURE(seed);
    ++rounds;
    CAPTURE(rounds);
    soak.round();
  } while (std::chrono::steady_clock::now() < until);
  MESSAGE("rounds: " << rounds << " of " << round_transfers << " transfers");
}
