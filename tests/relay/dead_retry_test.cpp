// A key goes on after its dead message was decided, in order, and what waits meanwhile costs nobody else.

#include <doctest/doctest.h>

#include <atomic>
#include <future>

#include "tests/relay/rig.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

// A row that the relay refuses as it is, and that an operator can mend.
constexpr const char* forged =
    "INSERT INTO outbox_msg (topic, msg_key, body, headers) VALUES ($1, 'k', to_json(nextval('number')), "
    "'{\"outbox-id\": \"forged\"}')";
constexpr const char* sound =
    "INSERT INTO outbox_msg (topic, msg_key, body) VALUES ($1, 'k', to_json(nextval('number')))";

std::string outboxd_dead(RelayRig& rig, std::vector<std::string> args) {
  args.insert(args.begin(), "dead");
  args.insert(args.end(), {"-c", rig.config()});
  const auto done = run_program(OUTBOXD_PROGRAM, {.args = std::move(args)});
  REQUIRE_MESSAGE(done.status.code == 0, done.errors);
  return done.output;
}

// How long `rows` new rows of `key` take until they are sent, in seconds.
double time_to_send(RelayRig& rig, const std::string& topic, const std::string& key, int rows) {
  const auto begun = std::chrono::steady_clock::now();
  for (int batch = 0; batch < 10; ++batch) {
    rig.ask(
        "INSERT INTO outbox_msg (topic, msg_key, body) SELECT $1, $2, '1' FROM generate_series(1, $3::int)",
        pg::Params{}.text(topic).text(key).i32(rows / 10));
    rig.await("the neighbour's rows are sent", [&] {
      return rig.ask(
                 "SELECT count(*) FROM outbox_msg WHERE topic = $1 AND msg_key = $2 AND status = 'PENDING'",
                 pg::Params{}.text(topic).text(key)) == "0";
    });
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

}  // namespace

TEST_CASE("after each retry a key goes on in order while new rows of it keep arriving") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("retry", 3);
  rig.ask("CREATE SEQUENCE number");
  rig.start();
  std::atomic<bool> over = false;
  auto business = std::async(std::launch::async, [&] {
    auto session = must(pg::Session::connect({.uri = rig.uri()}));
    // A key is serialised by its business, so numbers rise in the order of the commits.
    for (int i = 0; !over && i < 50'000; ++i)
      must(session.exec(i % 400 == 50 ? forged : sound, pg::Params{}.text(topic)));
  });
  for (int round = 0; round < 6; ++round) {
    rig.await("one is dead and later ones wait",
              [&] { return rig.count("DEAD") == "1" && rig.count("HELD") != "0"; });
    rig.ask("UPDATE outbox_msg SET headers = '{}' WHERE status = 'DEAD'");
    CHECK(outboxd_dead(rig, {"retry", "--topic", topic, "--key", "k"}) == "rig: 1 retried\n");
  }
  over = true;
  business.get();
  rig.await("all is sent or waits behind the next dead one", [&] {
    if (rig.count("DEAD") == "1") {
      rig.ask("UPDATE outbox_msg SET headers = '{}' WHERE status = 'DEAD'");
      outboxd_dead(rig, {"retry", "--all"});
    }
    return rig.count("SENT") == rig.ask("SELECT count(*) FROM outbox_msg");
  });
  int last = 0;
  for (const std::string& body : bodies_of(KafkaCluster::shared().read_all(topic), "k")) {
    const int number = std::stoi(body);
    if (number <= last) continue;  // a copy
    CHECK(number == last + 1);
    last = number;
  }
  CHECK(std::to_string(last) == rig.ask("SELECT count(*) FROM outbox_msg"));
}

TEST_CASE("a key held with a hundred thousand rows behind it neither slows its neighbours nor starves them") {
  RelayRig rig{{.source = "poll_interval: 50ms"}};
  const std::string topic = KafkaCluster::shared().new_topic("behind", 3);
  const std::string neighbour = rig.ask(
      "SELECT min(n) FROM generate_series(1, 2000) n WHERE hashtext(n::text) & 63 = hashtext('k') & 63");
  rig.ask("CREATE SEQUENCE number");
  rig.start();
  const double alone = time_to_send(rig, topic, neighbour, 500);
  rig.ask(forged, pg::Params{}.text(topic));
  rig.await("it is dead", [&] { return rig.count("DEAD") == "1"; });
  rig.ask(
      "INSERT INTO outbox_msg (topic, msg_key, body) SELECT $1, 'k', to_json(nextval('number')) FROM "
      "generate_series(1, 100000)",
      pg::Params{}.text(topic));
  time_to_send(rig, topic, neighbour, 10);  // all of the held key's rows have smaller ids, in the same shard
  rig.await(
      "they are held", [&] { return rig.count("HELD") == "100000"; }, Millis{60'000});
  const double beside = time_to_send(rig, topic, neighbour, 500);
  MESSAGE("500 rows of a neighbour: alone " << alone << " s, beside 100,000 held rows " << beside << " s");
  CHECK(beside < 3 * alone + 1);
  rig.ask("UPDATE outbox_msg SET headers = '{}' WHERE status = 'DEAD'");
  outboxd_dead(rig, {"retry", "--all"});
  rig.eventually_none_pending(Millis{90'000});
  CHECK(rig.count("HELD") == "0");
  int last = 0;
  for (const std::string& body : bodies_of(KafkaCluster::shared().read_all(topic), "k")) {
    if (std::stoi(body) <= last) continue;
    CHECK(std::stoi(body) == last + 1);
    last = std::stoi(body);
  }
  CHECK(last == 100'001);
}
