#include <doctest/doctest.h>

#include "tests/relay/rig.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

void insert(RelayRig& rig, const std::string& topic, const std::string& key, int from, int to) {
  rig.ask(
      "INSERT INTO outbox_msg (topic, msg_key, body) SELECT $1, $2, to_json(i) FROM generate_series($3::int, "
      "$4::int) i",
      pg::Params{}.text(topic).text(key).i32(from).i32(to));
}

std::vector<std::string> numbers(int from, int to) {
  std::vector<std::string> out;
  for (int i = from; i <= to; ++i) out.push_back(std::to_string(i));
  return out;
}

}  // namespace

TEST_CASE("a paused topic waits while others go on, and after resume it is sent in order") {
  RelayRig rig;
  auto& kafka = KafkaCluster::shared();
  const std::string paused = kafka.new_topic("paused", 2);
  const std::string other = kafka.new_topic("other", 1);
  rig.start();
  insert(rig, paused, "K", 1, 5);
  rig.eventually_none_pending();
  const auto done = rig.outboxd({"pause", paused, "--reason", "maintenance", "--by", "tester"});
  REQUIRE_MESSAGE(done.status.code == 0, done.errors);
  CHECK(done.output.starts_with("rig: paused"));
  insert(rig, paused, "K", 6, 20);
  insert(rig, other, "K", 1, 3);
  rig.await("the paused rows are held", [&] { return rig.count("HELD") == "15"; });
  rig.await("the others are sent", [&] { return rig.count("SENT") == "8"; });
  CHECK(rig.ask("SELECT scope, reason FROM outbox_hold") == "topic|operator: maintenance (tester)");
  CHECK(rig.outboxd({"pause", paused, "--reason", "again", "--by", "tester"}).output ==
        "rig: was paused already by tester\n");
  CHECK(rig.outboxd({"pause", paused, "--reason", "audit", "--by", "another"})
            .output.starts_with("rig: paused"));
  CHECK(rig.outboxd({"resume", paused, "--by", "a third"}).errors.find("another and tester") !=
        std::string::npos);
  CHECK(rig.outboxd({"resume", paused, "--by", "another"}).output ==
        "rig: the pause of another ended; still on hold: \"operator: maintenance (tester)\"\n");
  CHECK(rig.count("HELD") == "15");
  CHECK(rig.outboxd({"resume", paused}).output == "rig: let go, with 15 rows that waited\n");
  rig.await("all are sent", [&] { return rig.count("SENT") == "23"; });
  CHECK(bodies_of(kafka.read_all(paused), "K") == numbers(1, 20));
}

TEST_CASE("a topic that was missing and then paused stays paused when Kafka has it again") {
  RelayRig rig;
  const std::string topic = KafkaCluster::unique_topic("paused-missing");
  insert(rig, topic, "K", 1, 3);
  Process& relay = rig.start();
  rig.await("the relay holds the missing topic", [&] { return rig.count("HELD") == "3"; });
  CHECK(rig.outboxd({"pause", topic, "--reason", "maintenance", "--by", "tester"})
            .output.starts_with("rig: paused"));
  CHECK(rig.ask("SELECT cause FROM outbox_hold ORDER BY 1") == "kafka operator");
  KafkaCluster::shared().create_topic(topic);
  rig.await(
      "the relay has seen the topic",
      [&] { return relay.errors().find("topic_stays_on_hold") != std::string::npos; }, Millis{60'000});
  CHECK(relay.errors().find("topic_released") == std::string::npos);
  insert(rig, topic, "K", 4, 4);
  rig.await("the new row waits as well", [&] { return rig.count("HELD") == "4"; });
  CHECK(rig.outboxd({"resume", topic}).output == "rig: let go, with 4 rows that waited\n");
  rig.await("all are sent", [&] { return rig.count("SENT") == "4"; });
  CHECK(bodies_of(KafkaCluster::shared().read_all(topic), "K") == numbers(1, 4));
}

TEST_CASE("a paused key waits alone") {
  RelayRig rig;
  auto& kafka = KafkaCluster::shared();
  const std::string topic = kafka.new_topic("key", 2);
  REQUIRE(rig.outboxd({"pause", topic, "--key", "A", "--reason", "audit"}).status.code == 0);
  rig.start();
  insert(rig, topic, "A", 1, 3);
  insert(rig, topic, "B", 1, 3);
  rig.await("B is sent and A held", [&] { return rig.count("SENT") == "3" && rig.count("HELD") == "3"; });
  CHECK(rig.outboxd({"resume", topic, "--key", "A"}).status.code == 0);
  rig.await("A is sent", [&] { return rig.count("SENT") == "6"; });
  CHECK(bodies_of(kafka.read_all(topic), "A") == numbers(1, 3));
}

TEST_CASE("replay sends what was sent again, with the same ids, and keeps the reason") {
  RelayRig rig;
  auto& kafka = KafkaCluster::shared();
  const std::string topic = kafka.new_topic("replay", 1);
  const std::string other = kafka.new_topic("kept", 1);
  rig.start();
  insert(rig, topic, "K", 1, 7);
  insert(rig, other, "K", 1, 2);
  rig.eventually_none_pending();
  CHECK(rig.outboxd({"replay", "--reason", "x"}).status.code == 2);
  const auto dry = rig.outboxd({"replay", "--topic", topic, "--reason", "lost", "--dry-run"});
  CHECK_MESSAGE(dry.output == "rig: would send 7 rows again, ids 1 to 7\n", dry.errors);
  CHECK(rig.count("SENT") == "9");
  const auto begun = std::chrono::steady_clock::now();
  const auto done =
      rig.outboxd({"replay", "--topic", topic, "--reason", "lost", "--by", "tester", "--rate", "5"});
  CHECK_MESSAGE(done.output == "rig: sends 7 rows again\n", done.errors);
  // A claim that begins above what was sent must not pass them by: each batch counts.
  CHECK(rig.ask("SELECT times >= 2 FROM outbox_released") == "t");
  CHECK(std::chrono::steady_clock::now() - begun > Millis{1300});  // 7 rows at 5 a second
  rig.await("they are sent again",
            [&] { return kafka.read_all(topic).size() == 14 && rig.count("SENT") == "9"; });
  const auto records = kafka.read_all(topic);
  std::map<std::string, int> copies;
  for (const KafkaRecord& r : records) copies[r.header("outbox-id").value()] += 1;
  CHECK(copies.size() == 7);
  for (const auto& [id, count] : copies) CHECK(count == 2);
  CHECK(kafka.read_all(other).size() == 2);
  CHECK(rig.ask("SELECT DISTINCT generation, last_error FROM outbox_msg WHERE id <= 7") ==
        "1|replayed by postgres (tester): lost");
  CHECK(rig.ask("SELECT action, db_role, person, reason, rows, detail ->> 'topic' = $1 FROM outbox_operation",
                pg::Params{}.text(topic)) == "replay|postgres|tester|lost|7|t");
  CHECK(rig.outboxd({"replay", "--id", "1", "2", "--until", "2001-01-01", "--reason", "x"}).output ==
        "rig: sends 0 rows again\n");
}

TEST_CASE(
    "a paused pipeline claims nothing at any instance, is told as paused and not as stuck, and goes on after "
    "it") {
  RelayRig rig({.admin = std::string{admin_socket}});
  auto& kafka = KafkaCluster::shared();
  const std::string topic = kafka.new_topic("paused-whole", 2);
  rig.start({.instance = "first"});
  rig.await("the first shows itself",
            [&] { return rig.logs().find("admin_listening") != std::string::npos; });
  rig.options().admin = "off";
  rig.start({.instance = "second"});
  insert(rig, topic, "K", 1, 5);
  rig.eventually_none_pending();
  const auto paused = rig.outboxd({"pause", "--all", "--reason", "migration", "--by", "tester"});
  CHECK_MESSAGE(paused.output == "rig: paused; what was claimed before is still sent\n", paused.errors);
  CHECK(rig.outboxd({"pause", "--all", "--reason", "again", "--by", "tester"}).output ==
        "rig: was paused already by tester\n");
  const auto told = [&](std::string_view event) {
    const std::string logs = rig.logs();
    std::size_t count = 0;
    for (auto at = logs.find(event); at != std::string::npos; at = logs.find(event, at + 1)) ++count;
    return count;
  };
  rig.await("both have heard", [&] { return told(" paused ") == 2; });
  insert(rig, topic, "K", 6, 20);
  CHECK_FALSE(happens_within(Millis{13'000}, [&] {  // longer than the patience of a judgement
    return rig.count("PENDING") != "15" || rig.shown("/readyz").status != 200;
  }));
  CHECK(rig.shown("/readyz").body == "rig: paused: operator: migration (tester)\n");
  CHECK(rig.shown("/metrics").body.find("outboxd_paused{pipeline=\"rig\"} 1") != std::string::npos);
  CHECK(rig.shown("/metrics").body.find("outboxd_stuck{pipeline=\"rig\"} 0") != std::string::npos);
  CHECK(rig.shown("/status").body.find("\"verdict\":\"paused\"") != std::string::npos);
  CHECK(rig.outboxd({"status"}).output.find("pipeline paused  since ") != std::string::npos);
  CHECK(rig.count("HELD") == "0");
  CHECK(rig.outboxd({"resume", "--all", "--by", "tester"}).output == "rig: let go\n");
  CHECK(rig.outboxd({"resume", "--all"}).output == "rig: was not paused\n");
  rig.eventually_none_pending();
  CHECK(bodies_of(kafka.read_all(topic), "K") == numbers(1, 20));
  CHECK(rig.ask("SELECT action, detail ->> 'scope', person FROM outbox_operation WHERE person = 'tester' "
                "ORDER BY id") == "pause|pipeline|tester pause|pipeline|tester resume|pipeline|tester");
}

TEST_CASE("a relay that starts while its pipeline is paused sends nothing until it is let go") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("paused-before", 1);
  REQUIRE(rig.outboxd({"pause", "--all", "--reason", "not yet"}).status.code == 0);
  insert(rig, topic, "K", 1, 3);
  rig.start();
  rig.await("it has heard", [&] { return rig.logs().find(" paused pipeline=rig") != std::string::npos; });
  CHECK_FALSE(happens_within(Millis{1000}, [&] { return rig.count("SENT") != "0"; }));
  CHECK(rig.outboxd({"resume", "--all"}).status.code == 0);
  rig.eventually_none_pending();
}

TEST_CASE("purge deletes what is settled and old, refuses the rest, and keeps who and why") {
  RelayRig rig;
  insert(rig, "t", "K", 1, 9);
  rig.ask(
      "UPDATE outbox_msg SET status = "
      "(ARRAY['SENT','SENT','SENT','PENDING','HELD','DEAD','DISCARDED','CANCELLED',"
      "'SENT'])[id], created_at = now() - interval '9 days', sent_at = now() - interval '8 days'");
  rig.ask("UPDATE outbox_msg SET sent_at = now() WHERE id = 9");
  rig.ask("UPDATE outbox_msg SET topic = 'u' WHERE id = 3");
  const auto purge = [&](std::vector<std::string> args) {
    args.insert(args.begin(), "purge");
    args.insert(args.end(), {"--reason", "disk", "--by", "tester"});
    return rig.outboxd(args);
  };
  for (const char* status : {"PENDING", "HELD", "DEAD", "everything"}) {
    const auto refused = purge({"--before", "yesterday", "--status", status});
    CHECK(refused.status.code == 2);
    CHECK_MESSAGE(refused.errors.find("are not settled and stay") != std::string::npos, refused.errors);
  }
  CHECK(purge({}).status.code == 2);
  CHECK(purge({"--before", "tomorrow"}).status.code != 0);
  CHECK(purge({"--before", "yesterday", "--dry-run"}).output == "rig: would delete 3 rows that are SENT\n");
  CHECK(rig.ask("SELECT count(*) FROM outbox_msg") == "9");
  CHECK(purge({"--before", "yesterday", "--topic", "t"}).output == "rig: deleted 2 rows that were SENT\n");
  CHECK(purge({"--before", "yesterday", "--rate", "10"}).output == "rig: deleted 1 rows that were SENT\n");
  CHECK(purge({"--before", "yesterday", "--status", "DISCARDED"}).output ==
        "rig: deleted 1 rows that were DISCARDED\n");
  CHECK(rig.ask("SELECT id, status FROM outbox_msg ORDER BY id") ==
        "4|PENDING 5|HELD 6|DEAD 8|CANCELLED 9|SENT");
  CHECK(rig.ask("SELECT detail ->> 'status', rows, person, reason FROM outbox_operation WHERE rows > 0 ORDER "
                "BY id") == "SENT|2|tester|disk SENT|1|tester|disk DISCARDED|1|tester|disk");
}
