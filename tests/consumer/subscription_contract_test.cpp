// One suite over the port, on the stand-in and on the real thing.

#include <doctest/doctest.h>

#include <memory>

#include "consumer/core/kafka_settings.hpp"
#include "consumer/kafka/subscription.hpp"
#include "fake_subscription.hpp"
#include "kafka_letters.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/kafka.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

struct FakeWorld {
  FakeKafka kafka{"contract", 2};
  std::string topic = "contract";
  std::unique_ptr<Subscription> member() { return std::make_unique<FakeSubscription>(kafka); }
  void send(const std::vector<Letter>& letters) {
    for (const auto& one : letters) kafka.send(one);
  }
};

struct KafkaWorld {
  KafkaCluster& cluster = KafkaCluster::shared();
  std::string topic = cluster.new_topic("contract", 2);
  std::unique_ptr<Subscription> member() {
    auto settings = kafka_settings({{"bootstrap.servers", cluster.bootstrap()}}, topic);
    auto made = subscribe_kafka({.properties = settings.properties, .topics = {topic}});
    if (!made) throw std::runtime_error(made.error().text());
    return std::move(*made);
  }
  void send(const std::vector<Letter>& letters) { test::send(cluster.bootstrap(), topic, letters); }
};

/// What a member says and gets.
struct Member {
  explicit Member(std::unique_ptr<Subscription> s, const Subscription::Starts& starts = {})
      : subscription(std::move(s)) {
    subscription->start(
        {.starts = [starts](auto) { return starts; },
         .on_assigned = [this](auto ids) { assigned.insert(assigned.end(), ids.begin(), ids.end()); },
         .on_revoked =
             [this](auto ids, Revoked how) {
               revoked.insert(revoked.end(), ids.begin(), ids.end());
               lost = lost || how == Revoked::lost;
               if (commit_when_revoked)
                 CHECK(subscription->commit(*commit_when_revoked, Commit::now).has_value());
             },
         .log = [](auto) {}});
  }
  void poll() {
    auto record = subscription->poll(Millis{50});
    if (record.value()) offsets[(*record)->record.partition].push_back((*record)->record.offset);
  }
  void poll_until(std::int32_t partition, std::size_t count) {
    eventually("records", [&] { return poll(), offsets[partition].size() >= count; });
  }

  std::unique_ptr<Subscription> subscription;
  std::vector<PartitionId> assigned, revoked;
  bool lost = false;
  std::optional<std::vector<NextOffset>> commit_when_revoked;
  std::map<std::int32_t, std::vector<std::int64_t>> offsets;
};

std::vector<Letter> five_each() {
  std::vector<Letter> out;
  for (int i = 0; i < 10; ++i) out.push_back({.partition = i % 2});
  return out;
}

using Numbers = std::vector<std::int64_t>;

}  // namespace

TYPE_TO_STRING(FakeWorld);
TYPE_TO_STRING(KafkaWorld);

TEST_CASE_TEMPLATE(
    "each partition's records come in order, and the next member goes on at the committed offset", World,
    FakeWorld, KafkaWorld) {
  World world;
  world.send(five_each());
  {
    Member member(world.member());
    member.poll_until(0, 5), member.poll_until(1, 5);
    CHECK(member.assigned.size() == 2);
    CHECK(member.offsets[0] == Numbers{0, 1, 2, 3, 4});
    const std::vector next = {NextOffset{{world.topic, 0}, 3}, NextOffset{{world.topic, 1}, 5}};
    CHECK(member.subscription->commit(next, Commit::now).has_value());
    member.subscription->close();
  }
  world.send({{.partition = 1}});
  Member next(world.member());
  next.poll_until(0, 2), next.poll_until(1, 1);
  CHECK(next.offsets[0] == Numbers{3, 4});
  CHECK(next.offsets[1] == Numbers{5});
  next.subscription->close();
}

TEST_CASE_TEMPLATE(
    "a paused partition gives nothing, the other goes on, and once resumed it goes on where it was", World,
    FakeWorld, KafkaWorld) {
  World world;
  world.send(five_each());
  Member member(world.member());
  member.poll_until(0, 5), member.poll_until(1, 5);
  const std::vector<PartitionId> first = {{world.topic, 0}};
  member.subscription->pause(first);
  world.send(five_each());
  member.poll_until(1, 10);
  CHECK(member.offsets[0].size() == 5);
  member.subscription->resume(first);
  member.poll_until(0, 10);
  CHECK(member.offsets[0] == Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  member.subscription->close();
}

TEST_CASE_TEMPLATE("a member that closes with records unread leaves them to the next", World, FakeWorld,
                   KafkaWorld) {
  World world;
  for (int round = 0; round < 5; ++round) {
    std::vector<Letter> many(2000, Letter{.body = std::string(100, 'x')});
    world.send(many);
    Member member(world.member());
    member.poll_until(0, 1);
    CHECK(member.offsets[0].front() == 0);
    member.subscription->close();
  }
}

TEST_CASE_TEMPLATE("a member that joins again gives everything back, and starts where it is told", World,
                   FakeWorld, KafkaWorld) {
  World world;
  world.send(five_each());
  Member member(world.member(), {{{world.topic, 0}, 3}});
  member.poll_until(0, 2), member.poll_until(1, 5);
  CHECK(member.offsets[0] == Numbers{3, 4});
  member.subscription->rejoin();
  member.poll_until(0, 4), member.poll_until(1, 10);
  CHECK(member.revoked.size() == 2);
  CHECK(member.assigned.size() == 4);
  CHECK(member.offsets[0] == Numbers{3, 4, 3, 4});
  member.subscription->close();
}

TEST_CASE_TEMPLATE("closing revokes what is assigned as handed over, and a commit from within counts", World,
                   FakeWorld, KafkaWorld) {
  World world;
  world.send(five_each());
  {
    Member member(world.member());
    member.poll_until(0, 5), member.poll_until(1, 5);
    member.commit_when_revoked = {{{world.topic, 0}, 4}};
    member.subscription->close();
    CHECK(member.revoked.size() == 2);
    CHECK_FALSE(member.lost);
  }
  Member next(world.member());
  next.poll_until(0, 1), next.poll_until(1, 5);
  CHECK(next.offsets[0] == Numbers{4});
  next.subscription->close();
}
