// kill -9 under load, on real PostgreSQL and real Kafka: the real outboxd, and a real service in a process of
// its own. The moments are drawn from a seed, which is printed; OUTBOX_CRASH_SEED replays them.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>

#include "bank.hpp"
#include "oracle.hpp"
#include "relay/commands/migrate/migrate.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/kafka.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/temporary_directory.hpp"
#include "victim.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

std::uint64_t seed_of_this_run() {
  const char* given = std::getenv("OUTBOX_CRASH_SEED");
  return given != nullptr ? std::stoull(given) : std::random_device{}();
}

// An outbox, its topic, and the configuration of a relay between them.
struct Outbox {
  Outbox(int partitions, const std::string& lines)
      : topic(KafkaCluster::shared().new_topic("transfers", partitions)) {
    must(relay::migrate(session, {}));
    write_file(folder / "outboxd.yaml",
               "pipelines:\n"
               "  - name: crash\n"
               "    postgres: { uri: \"" +
                   database.uri() + "\" }\n    kafka: { bootstrap.servers: \"" + kafka.bootstrap() +
                   "\" }\n" + lines);
  }

  [[nodiscard]] ProcessOptions relay() const { return {.args = {"run", "-c", folder / "outboxd.yaml"}}; }
  [[nodiscard]] ProcessOptions ledger(const std::string& member) const {
    return {.args = {"--postgres", database.uri(), "--kafka", kafka.bootstrap(), "--topic", topic, "--name",
                     topic, "--commit-interval-ms", "50", "--kafka-property", "group.instance.id=" + member}};
  }
  std::int64_t number(std::string_view sql) { return must(session.exec(sql)).integer(0, 0); }
  std::int64_t unsent() { return number("SELECT count(*) FROM outbox_msg WHERE status <> 'SENT'"); }

  TestDatabase database;
  pg::Session session = database.session();
  KafkaCluster& kafka = KafkaCluster::shared();
  std::string topic;
  TemporaryDirectory folder;
};

// What is killed when so many of a round's transfers are made, and for how many more it stays dead.
struct Strike {
  std::int64_t due;
  std::int64_t dead_for;
  std::vector<std::size_t> victims;
};

constexpr std::int64_t round_transfers = 600;
// The victims, by their places.
constexpr std::size_t the_relay = 0, one_service = 1, other_service = 2;

std::vector<Strike> plan_strikes(std::mt19937_64& random) {
  const auto number = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  const std::vector<std::vector<std::size_t>> choices = {{the_relay},
                                                         {one_service},
                                                         {other_service},
                                                         {the_relay, one_service},
                                                         {one_service, other_service},
                                                         {the_relay, one_service, other_service}};
  std::vector<Strike> strikes;
  for (int i = number(1, 3); i > 0; --i)
    strikes.push_back({number(1, round_transfers), number(0, round_transfers / 4),
                       choices[static_cast<std::size_t>(number(0, static_cast<int>(choices.size()) - 1))]});
  std::ranges::sort(strikes, {}, &Strike::due);
  return strikes;
}

using Victims = std::array<Victim, 3>;

void strike(const Strike& strike, const Bank& bank, Victims& victims) {
  const auto made = [&](std::int64_t transfers) {
    return [&bank, enough = std::min(transfers, round_transfers)] { return bank.made() >= enough; };
  };
  eventually("transfers", made(strike.due), Millis{60'000});
  for (const auto victim : strike.victims) victims[victim].kill();
  eventually("transfers while it is dead", made(strike.due + strike.dead_for), Millis{60'000});
  for (const auto victim : strike.victims) victims[victim].start();
}

}  // namespace

TEST_CASE("relay and services killed at any moment under load: money and order hold after each round") {
  const std::uint64_t seed = seed_of_this_run();
  MESSAGE("OUTBOX_CRASH_SEED=" << seed);
  std::mt19937_64 random(seed);
  Outbox outbox(6, "    source: { poll_interval: 100ms }\n    lease: { ttl: 1s }\n");
  Bank bank({.postgres = outbox.database.uri(), .topic = outbox.topic});
  Victims victims = {Victim(OUTBOXD_PROGRAM, outbox.relay()),
                     Victim(OUTBOX_LEDGER_CONSUMER, outbox.ledger("first")),
                     Victim(OUTBOX_LEDGER_CONSUMER, outbox.ledger("second"))};
  eventually(
      "the ledger's tables",
      [&] { return outbox.number("SELECT count(to_regclass('ledger_account'))") == 1; }, Millis{60'000});

  for (int round = 1; round <= 20; ++round) {
    CAPTURE(seed);
    CAPTURE(round);
    bank.begin(round_transfers, random());
    for (const auto& next : plan_strikes(random)) strike(next, bank, victims);
    bank.finish();
    eventually(
        "all sent", [&] { return outbox.unsent() == 0; }, Millis{60'000});
    const std::int64_t messages = outbox.number("SELECT 2 * count(*) FROM bank_transfer");
    eventually(
        "all applied", [&] { return outbox.number("SELECT count(*) FROM ledger_entry") >= messages; },
        Millis{60'000});
    REQUIRE(broken_money_laws(outbox.session) == "");
    REQUIRE(broken_topic_laws(outbox.session, outbox.kafka.read_all(outbox.topic)) == "");
  }
  CHECK(outbox.number("SELECT count(*) FROM bank_transfer") < 20 * round_transfers);  // some rolled back
  for (auto& victim : victims) victim.stop();
  MESSAGE("kills: relay " << victims[the_relay].kills() << ", services "
                          << victims[one_service].kills() + victims[other_service].kills());
}

TEST_CASE("a relay killed amid a backlog repeats no more than it had in flight, and loses nothing") {
  constexpr std::int64_t backlog = 20'000, in_flight = 500;
  constexpr int kills = 10;
  const std::uint64_t seed = seed_of_this_run();
  MESSAGE("OUTBOX_CRASH_SEED=" << seed);
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  Outbox outbox(4,
                "    source: { poll_interval: 100ms, batch_rows: 100 }\n    lease: { ttl: 2s }\n"
                "    publish: { in_flight_rows: 500 }\n");
  must(outbox.session.exec(
      "INSERT INTO outbox_msg (topic, msg_key, body) SELECT $1, 'k' || n % 100, to_json(n)"
      " FROM generate_series(1, $2) n",
      pg::Params().text(outbox.topic).i64(backlog)));
  Victim relay(OUTBOXD_PROGRAM, outbox.relay());
  while (relay.kills() < kills) {
    const auto enough = outbox.unsent() - std::uniform_int_distribution(1, 800)(random);
    eventually(
        "progress", [&] { return outbox.unsent() <= enough; }, Millis{60'000});
    relay.kill();
    REQUIRE(outbox.unsent() > 0);
    relay.start();
  }
  eventually(
      "all sent", [&] { return outbox.unsent() == 0; }, Millis{60'000});
  relay.stop();
  const auto records = outbox.kafka.read_all(outbox.topic);
  CHECK(broken_topic_laws(outbox.session, records) == "");
  const auto copies = static_cast<std::int64_t>(records.size()) - backlog;
  MESSAGE("copies: " << copies);
  CHECK(copies >= 0);
  CHECK(copies <= kills * in_flight);
}
