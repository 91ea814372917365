// kill -9 of the real outboxd at each of its crash points, in every claim mode and with both ways to settle a
// sent row. One relay dies at a point, and the next one recovers from that and dies at the next point; the
// laws are checked when a last one has finished.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <vector>

#include "base/crash_point.hpp"
#include "tests/relay/numbered.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

constexpr int rows_of_a_death = 300;
constexpr int in_flight = 200;

std::string name_of(CrashPoint point) {
  return std::string{crash_points.at(static_cast<std::size_t>(point)).name};
}

// The relays that die, their table and their topics.
class Deaths {
 public:
  Deaths(const std::string& mode, const std::string& after_sent)
      : rig_(
            {.source = "poll_interval: 100ms, batch_rows: 100, mode: " + mode + ", after_sent: " + after_sent,
             .pipeline = "    publish: { in_flight_rows: 200 }\n",
             .ttl = "1s"}) {}

  /// One relay that dies at `point`. `with`: what it takes that the relay comes there.
  void at(
      CrashPoint point, int pass, const std::function<void(Process&)>& with = [](Process&) {}) {
    insert_numbered(rig_, flowing_, rows_ + 1, rows_ + rows_of_a_death);
    rows_ += rows_of_a_death;
    Process& relay = rig_.start({.env = {{"OUTBOX_CRASH_AT", name_of(point) + ":" + std::to_string(pass)}}});
    with(relay);
    rig_.await(name_of(point) + " is reached", [&] { return !relay.running(); });
    CHECK_MESSAGE(relay.wait().signal == SIGKILL, name_of(point));
    reached_.push_back(point);
    ++kills_;
  }

  void insert(const std::string& topic, const std::string& key, const std::string& body) {
    rig_.ask("INSERT INTO outbox_msg (topic, msg_key, body) VALUES ($1, $2, to_json($3::text))",
             pg::Params{}.text(topic).text(key).text(body));
  }
  /// A message that Kafka will not take, and one of its key behind it.
  void insert_dead() {
    insert(limited_, "dead" + std::to_string(++dead_), std::string(5000, 'x'));
    insert(limited_, "dead" + std::to_string(dead_), "behind");
  }
  [[nodiscard]] std::string new_topic() { return kafka_.new_topic("death-pinned", 2); }
  /// Makes a topic that a relay holds because it is missing, and is back now.
  void bring_back(const std::string& topic) {
    unharmed_until("SELECT count(*) FROM outbox_hold WHERE topic = $1", topic);
    kafka_.create_topic(topic);
  }
  /// One more partition for a topic whose count is recorded, and a row for it.
  void grow() {
    insert(growing_, "1", "not grown");
    unharmed_until("SELECT count(*) FROM outbox_topic WHERE topic = $1", growing_);
    kafka_.add_partitions(growing_, 2);
    insert(growing_, "2", "grown");
  }
  void lanes_taken(Process& relay) {
    // All of them, also those of the one that died before: a relay with half of them has no surplus.
    rig_.await("it has all lanes", [&] { return relay.errors().find("lanes=8 of=8") != std::string::npos; });
  }
  /// Another instance for as long as `relay` lives: it takes half of the lanes.
  void share(Process& relay) {
    lanes_taken(relay);
    Process& other = rig_.start({.instance = "other"});
    rig_.await("the first one died", [&] { return !relay.running(); });
    other.kill();
    other.wait();
    ++kills_;
  }
  void pause(Process& relay) {
    lanes_taken(relay);
    relay.kill(SIGSTOP);
    const MonoTime until = std::chrono::steady_clock::now() + Millis{1200};
    rig_.await("its lease is over", [&] { return std::chrono::steady_clock::now() > until; });
    relay.kill(SIGCONT);
  }

  void laws_hold() {
    Process& last = rig_.start();
    rig_.eventually_none_pending(Millis{60'000});
    CHECK(rig_.count("DEAD") == std::to_string(dead_));
    CHECK(rig_.count("HELD") == std::to_string(dead_));
    last.kill(SIGTERM);
    CHECK(last.wait().code == 0);
    const int copies = complete_and_in_order(kafka_, flowing_, rows_);
    MESSAGE("kills: " << kills_ << ", copies: " << copies);
    CHECK(copies <= kills_ * in_flight);
    for (const auto& row : crash_points) {
      if (!row.name.starts_with("relay_")) continue;
      const bool reached = std::ranges::find(reached_, row.point) != reached_.end();
      CHECK_MESSAGE((reached || may_be_left_out(row.point)), row.name);
    }
  }
  void leave_out(CrashPoint point) { left_out_.push_back(point); }

 private:
  /// Runs a relay that nobody kills before `count_of_topic` says 1.
  void unharmed_until(const std::string& count_of_topic, const std::string& topic) {
    const auto so = [&] { return rig_.ask(count_of_topic, pg::Params{}.text(topic)) == "1"; };
    if (so()) return;
    Process& relay = rig_.start();
    rig_.await("a relay gets that far", so);
    relay.kill();
    relay.wait();
    ++kills_;
  }
  [[nodiscard]] bool may_be_left_out(CrashPoint point) const {
    return std::ranges::find(left_out_, point) != left_out_.end();
  }

  KafkaCluster& kafka_ = KafkaCluster::shared();
  RelayRig rig_;
  std::string flowing_ = kafka_.new_topic("death", 3);
  std::string limited_ = kafka_.new_topic("death-limited", 1, {{"max.message.bytes", "2000"}});
  std::string growing_ = kafka_.new_topic("death-grown", 1);
  int rows_ = 0;
  int dead_ = 0;
  int kills_ = 0;
  std::vector<CrashPoint> reached_;
  std::vector<CrashPoint> left_out_;
};

void die_everywhere(const std::string& mode, const std::string& after_sent) {
  if (!crash_points_compiled) return;
  Deaths deaths(mode, after_sent);
  using enum CrashPoint;
  const std::string missing = KafkaCluster::unique_topic("death-missing");
  const std::string absent = KafkaCluster::unique_topic("death-absent");

  deaths.at(relay_lease_asked, 1);
  deaths.at(relay_leased, 1);
  deaths.at(relay_claim_asked, 2);
  deaths.at(relay_claimed, 1);
  deaths.at(relay_publishing, 50);
  deaths.at(relay_published, 1);
  deaths.at(relay_acked, 30);
  deaths.at(relay_mark_asked, 1);
  deaths.at(relay_marked, 2);

  deaths.insert_dead();
  deaths.at(relay_bury_asked, 1);
  deaths.insert_dead();
  deaths.at(relay_buried, 1);
  deaths.insert_dead();
  deaths.at(relay_rows_held, 1);

  deaths.insert(missing, "a", "one");
  deaths.at(relay_hold_asked, 1);
  deaths.insert(absent, "a", "one");
  deaths.at(relay_topic_held, 1);
  deaths.bring_back(missing);
  deaths.at(relay_release_asked, 1);
  deaths.bring_back(absent);
  deaths.at(relay_topic_released, 1);

  deaths.insert(deaths.new_topic(), "a", "one");
  deaths.at(relay_pinned, 1);
  if (KafkaCluster::shared().real()) {
    deaths.grow();
    deaths.at(relay_repinned, 1);
  } else {
    deaths.leave_out(relay_repinned);  // a mock's topics do not grow
  }

  deaths.at(relay_lanes_lost, 1, [&](Process& relay) { deaths.pause(relay); });
  deaths.at(relay_give_back_asked, 1, [&](Process& relay) { deaths.share(relay); });
  deaths.at(relay_given_back, 1, [&](Process& relay) { deaths.share(relay); });
  if (mode == "notify")
    deaths.at(relay_asleep, 1);
  else
    deaths.leave_out(relay_asleep);
  for (const CrashPoint point : {relay_stopping, relay_stopped})
    deaths.at(point, 1, [&](Process& relay) {
      deaths.lanes_taken(relay);
      relay.kill(SIGTERM);
    });
  deaths.laws_hold();
}

}  // namespace

TEST_CASE("killed at each crash point of the relay, polling, marking: nothing lost, keys in order") {
  die_everywhere("poll", "mark");
}
TEST_CASE("killed at each crash point of the relay, polling, deleting: nothing lost, keys in order") {
  die_everywhere("poll", "delete");
}
TEST_CASE("killed at each crash point of the relay, notified, marking: nothing lost, keys in order") {
  die_everywhere("notify", "mark");
}
TEST_CASE("killed at each crash point of the relay, notified, deleting: nothing lost, keys in order") {
  die_everywhere("notify", "delete");
}

TEST_CASE("each answer that can be lost is lost, many times over: nothing lost, keys in order") {
  if (!crash_points_compiled) return;
  using enum CrashPoint;
  RelayRig rig{{.source = "poll_interval: 100ms, batch_rows: 50"}};
  KafkaCluster& kafka = KafkaCluster::shared();
  const std::string topic = kafka.new_topic("answers", 3);
  const std::string limited = kafka.new_topic("answers-limited", 1, {{"max.message.bytes", "2000"}});
  std::string lost;
  for (const CrashPoint point : {relay_leased, relay_claimed, relay_marked, relay_buried, relay_rows_held,
                                 relay_topic_held, relay_topic_released, relay_pinned, relay_asleep})
    for (const int pass : {1, 3, 4, 9})
      lost += (lost.empty() ? "" : ",") + name_of(point) + ":" + std::to_string(pass) + ":error";
  Process& relay = rig.start({.env = {{"OUTBOX_CRASH_AT", lost}}});
  const std::string missing = KafkaCluster::unique_topic("answers-missing");
  const auto insert = [&](const std::string& to, const std::string& key, int bytes) {
    rig.ask("INSERT INTO outbox_msg (topic, msg_key, body) VALUES ($1, $2, to_json(repeat('x', $3)))",
            pg::Params{}.text(to).text(key).i32(bytes));
  };
  for (int i = 0; i < 10; ++i) {
    insert_numbered(rig, topic, i * 300 + 1, i * 300 + 300);
    insert(limited, "k" + std::to_string(i), 5000);
    insert(limited, "k" + std::to_string(i), 5);
    insert(missing, "k", 5);
  }
  rig.await(
      "all but the held ones are sent", [&] { return rig.count("SENT") == "3000"; }, Millis{60'000});
  rig.await(
      "the others are dead and held", [&] { return rig.count("DEAD") == "10" && rig.count("HELD") == "20"; },
      Millis{60'000});
  kafka.create_topic(missing);
  rig.await(
      "the missing topic's are sent", [&] { return rig.count("SENT") == "3010"; }, Millis{60'000});
  CHECK(complete_and_in_order(kafka, topic, 3000) == 0);
  CHECK(relay.running());
}
