// What KafkaBroker does beyond the port's contract: limits, refusals, faults of real brokers.

#include <librdkafka/rdkafka.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "relay/core/kafka/errors.hpp"
#include "relay/kafka/producer.hpp"
#include "tests/contract/kafka_broker_fixture.hpp"

using namespace outbox;
using namespace outbox::test;
using relay::Accepted;
using relay::LinkState;
using relay::Refusal;
using relay::TopicState;

namespace {

using Run = BrokerRun<KafkaBrokerFixture>;

constexpr std::int16_t init_producer_id_request = 22;
constexpr int cluster_authorization_failed = 31;

bool skipped_on_mock() {
  if (KafkaCluster::shared().real()) return false;
  MESSAGE("skipped: only a real broker judges this");
  return true;
}

// client.conf of a cluster with logins, as properties.
std::map<std::string, std::string> login_of(const KafkaCluster& cluster) {
  std::map<std::string, std::string> properties;
  std::ifstream file{cluster.folder() + "/client.conf"};
  for (std::string line; std::getline(file, line);) {
    const auto equals = line.find('=');
    properties[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return properties;
}

}  // namespace

TEST_CASE("every code in the table of Kafka's errors has librdkafka's name") {
  for (const auto& row : relay::kafka_errors()) {
    CHECK(row.name == rd_kafka_err2name(static_cast<rd_kafka_resp_err_t>(row.code)));
  }
}

TEST_CASE("properties that break the promise, unknown ones and bad values are refused, all at once") {
  relay::KafkaOptions options;
  options.properties = {
      {"acks", "1"}, {"no.such.property", "1"}, {"retry.backoff.ms", "soon"}, {"client.id", "fine"}};
  const auto status = relay::KafkaBroker::check(options);
  REQUIRE(!status.has_value());
  CHECK(status.error().disposition == Disposition::fatal);
  for (const char* part : {"acks: 1 is refused", "no.such.property", "retry.backoff.ms"}) {
    CAPTURE(status.error().message);
    CHECK(status.error().message.find(part) != std::string::npos);
  }
  CHECK(status.error().message.find("client.id") == std::string::npos);
  options.properties = {{"acks", "all"}, {"enable.idempotence", "true"}, {"compression.codec", "lz4"}};
  CHECK(relay::KafkaBroker::check(options).has_value());
}

TEST_CASE("the loaded librdkafka says its version") {
  CHECK(relay::KafkaBroker::library_version().size() >= 5);
}

TEST_CASE("a record has the relay's headers before the row's own, and the time of publishing") {
  relay::KafkaOptions options;
  options.envelope.preset = relay::HeaderPreset::debezium;
  Run run{KafkaCluster::shared(), options};
  const auto topic = run.fixture.topic(1);
  const OwnedMessage message{topic, "k", "v", {{"traceparent", "00"}}};
  const auto before = std::chrono::system_clock::now();
  run.publish(message, 0);
  run.await_reports(1);
  const auto record = run.fixture.cluster().read_all(topic).at(0);
  const auto id = to_string(message.view().msg_id);
  const TextHeaders expected{{"outbox-id", id},
                             {"outbox-seq", std::to_string(message.view().id.value)},
                             {"outbox-created-at", "1970-01-01T00:00:00.000000Z"},
                             {"outbox-source", "contract"},
                             {"id", id},
                             {"traceparent", "00"}};
  CHECK(record.headers == expected);
  CHECK(record.timestamp >= std::chrono::floor<std::chrono::milliseconds>(before));
  CHECK(record.timestamp <= std::chrono::system_clock::now());
}

TEST_CASE("a row that forges a header is refused, and nothing is sent") {
  Run run{KafkaCluster::shared()};
  const auto topic = run.fixture.topic(1);
  const OwnedMessage message{topic, "k", "v", {{"Outbox-ID", "0"}}};
  const auto answer = run.try_publish(message, 0);
  REQUIRE(!answer.has_value());
  CHECK(answer.error().disposition == Disposition::quarantine);
  CHECK(answer.error().message.find("Outbox-ID") != std::string::npos);
  CHECK(run.fixture.stored(topic).empty());
}

TEST_CASE("above the bound publish says queue_full, and goes on after reports") {
  relay::KafkaOptions options;
  options.in_flight_messages_max = 10;
  Run run{KafkaCluster::shared(), options};
  const auto topic = run.fixture.topic(1);
  const auto messages = numbered(topic, 50);
  std::size_t sent = 0;
  bool was_full = false;
  REQUIRE(run.fixture.until([&] {
    while (sent < messages.size()) {
      const auto accepted = run.try_publish(*messages[sent], sent);
      REQUIRE(accepted.has_value());
      if (*accepted == Accepted::queue_full) {
        CHECK(sent - run.deliveries.size() <= 10);
        was_full = true;
        break;
      }
      ++sent;
    }
    return run.deliveries.size() == messages.size();
  }));
  CHECK(was_full);
  run.check_reported_once(messages.size());
  CHECK(run.fixture.stored(topic).size() == messages.size());
}

TEST_CASE("a message over the topic's limit is refused alone, and its neighbours go out, in order") {
  if (skipped_on_mock()) return;
  Run run{KafkaCluster::shared()};
  const auto topic = run.fixture.topic(1);
  const auto messages = numbered(topic, 20);
  const OwnedMessage large{topic, "k1", std::string(2'000'000, 'x')};
  for (std::size_t i = 0; i < 10; ++i) run.publish(*messages[i], i);
  run.publish(large, 1000);
  for (std::size_t i = 10; i < 20; ++i) run.publish(*messages[i], i);
  run.await_reports(21);
  for (const auto& delivery : run.deliveries) {
    CHECK(delivery.refusal.has_value() == (delivery.token == 1000));
    if (delivery.token != 1000) continue;
    CHECK(*delivery.refusal == Refusal::message);
    CHECK(delivery.reason.find("MSG_SIZE_TOO_LARGE") != std::string::npos);
  }
  CHECK(run.fixture.stored(topic).size() == 20);
  CHECK(run.fatals.empty());
}

TEST_CASE("a topic that takes only small batches is found by the look-up, and no batch of it is refused") {
  if (skipped_on_mock()) return;
  relay::KafkaOptions options;
  options.properties["linger.ms"] = "500";  // the answer comes while the others are in flight
  Run run{KafkaCluster::shared(), options};
  const auto wide = run.fixture.topic(1);
  const auto narrow = run.fixture.cluster().new_topic("narrow", 1, {{"max.message.bytes", "3000"}});
  const auto before = numbered(wide, 500);
  for (std::size_t i = 0; i < 500; ++i) run.publish(*before[i], i);
  const auto facts = run.look_up(narrow);
  CHECK(facts.message_bytes_max == 3000);
  CHECK(facts.reason.empty());
  CHECK(run.deliveries.size() == 500);  // what was in flight came before, and once
  Messages after;
  for (std::size_t i = 0; i < 500; ++i) {
    after.push_back(std::make_unique<OwnedMessage>(narrow, "k", std::string(300, 'x') + std::to_string(i)));
    run.publish(*after.back(), 500 + i);
  }
  run.await_reports(1000);
  run.check_reported_once(1000);
  for (const auto& delivery : run.deliveries) CHECK(!delivery.refusal);
  CHECK(run.fixture.stored(wide).size() == 500);
  CHECK(run.fixture.stored(narrow).size() == 500);
}

TEST_CASE("the encoded size is what a broker counts: exactly that passes, a little more does not") {
  if (skipped_on_mock()) return;
  constexpr std::int64_t limit = 5000;
  Run run{KafkaCluster::shared()};
  const auto topic =
      run.fixture.cluster().new_topic("size", 1, {{"max.message.bytes", std::to_string(limit)}});
  const relay::Envelope envelope{{.preset = relay::HeaderPreset::plain, .source = "contract"}};
  const auto message_of = [&](std::int64_t size) {
    const OwnedMessage none{topic, "k", ""};
    const auto body =
        static_cast<std::size_t>(size - envelope.encoded_size(none.view()) - 1);  // its length takes 2
    return std::make_unique<OwnedMessage>(topic, "k", std::string(body, 'x'));
  };
  const auto fits = message_of(limit);
  REQUIRE(envelope.encoded_size(fits->view()) == limit);
  const auto over = message_of(limit + 40);
  run.publish(*fits, 0);
  run.await_reports(1);
  CHECK(!run.deliveries[0].refusal);
  run.publish(*over, 1);
  run.await_reports(2);
  REQUIRE(run.deliveries[1].refusal);
  CHECK(*run.deliveries[1].refusal == Refusal::message);
}

TEST_CASE("a topic that is deleted under way holds the topic, not the relay") {
  if (skipped_on_mock()) return;
  Run run{KafkaCluster::shared(),
          relay::KafkaOptions{.properties = {{"topic.metadata.propagation.max.ms", "1000"}}}};
  const auto topic = run.fixture.topic(1);
  const auto other = run.fixture.topic(1);
  const OwnedMessage first{topic, "k", "1"}, second{topic, "k", "2"}, third{other, "k", "3"};
  run.publish(first, 0);
  run.await_reports(1);
  run.fixture.cluster().delete_topic(topic);
  run.publish(second, 1);
  run.publish(third, 2);
  run.await_reports(3);
  for (const auto& delivery : run.deliveries) {
    CHECK(delivery.refusal.has_value() == (delivery.token == 1));
    if (delivery.refusal) CHECK(*delivery.refusal == Refusal::topic);
  }
  CHECK(run.fatals.empty());
}

TEST_CASE("a producer's end is told once, publish says so, and a restart cures it") {
  KafkaCluster cluster{{.kind = KafkaKind::mock}};
  cluster.fail_requests(init_producer_id_request, {cluster_authorization_failed});
  Run run{cluster};
  const auto topic = run.fixture.topic(1);
  const auto messages = numbered(topic, 3);
  const auto first = run.try_publish(*messages[0], 0);
  const bool first_taken = first.has_value();
  REQUIRE(run.fixture.until([&] { return !run.fatals.empty(); }));
  const auto lines = run.fixture.log.size();
  cluster.kill();  // other events come after it, and it is not told again
  REQUIRE(run.fixture.until([&] { return run.fixture.log.size() > lines; }));
  cluster.start();
  CHECK(run.fatals.size() == 1);
  CHECK(run.fatals[0].disposition == Disposition::fatal);
  CHECK(run.fatals[0].code == "CLUSTER_AUTHORIZATION_FAILED");
  const auto second = run.try_publish(*messages[1], 1);
  REQUIRE(!second.has_value());
  CHECK(second.error().disposition == Disposition::fatal);
  bool restarted = false;
  run.fixture.broker().restart([&](const Status& status) {
    CHECK(status.has_value());
    CHECK(run.deliveries.size() == (first_taken ? 1 : 0));
    restarted = true;
  });
  REQUIRE(run.fixture.until([&] { return restarted; }));
  run.publish(*messages[2], 2);
  REQUIRE(run.fixture.until([&] { return run.reports.contains(2); }));
  CHECK(!run.deliveries.back().refusal);
  CHECK(run.fatals.size() == 1);
}

TEST_CASE("what a producer was handed and has not reported is given up by name") {
  relay::KafkaOptions options;
  options.properties["bootstrap.servers"] = "127.0.0.1:1";
  const int wake_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  auto made = relay::KafkaProducer::make(options, wake_fd);
  REQUIRE(made.has_value());
  const auto messages = numbered("nowhere", 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK((*made)->produce({&messages[i]->view(), relay::Partition{0}, 7 + i}, messages[i]->view().topic,
                           {}) == RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  CHECK((*made)->outstanding() == 3);
  std::vector<relay::Delivery> deliveries;
  (*made)->give_up(deliveries, "because");
  CHECK((*made)->outstanding() == 0);
  REQUIRE(deliveries.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(deliveries[i].token == 7 + i);
    CHECK(deliveries[i].refusal == Refusal::unsent);
    CHECK(deliveries[i].reason == "because");
  }
  made->reset();
  ::close(wake_fd);
}

TEST_CASE("a broker that dies and comes back: told once each, nothing lost, doubled or out of order") {
  KafkaCluster cluster{{.settings = {"auto.create.topics.enable=true"}}};
  if (!cluster.real()) return;
  relay::KafkaOptions options;
  options.look_up_patience = Millis{2000};
  Run run{cluster, options};
  const auto topic = run.fixture.topic(1);
  const auto messages = numbered(topic, 40);
  for (std::size_t i = 0; i < 10; ++i) run.publish(*messages[i], i);
  run.await_reports(10);

  const auto missing = run.fixture.missing_topic();
  CHECK(run.look_up(missing).state ==
        TopicState::missing);  // though the broker makes topics for whoever asks so
  CHECK(run.look_up(missing).state == TopicState::missing);

  cluster.kill();
  for (std::size_t i = 10; i < 20; ++i) run.publish(*messages[i], i);
  REQUIRE(run.fixture.until([&] { return !run.links.empty(); }));
  CHECK(run.links == std::vector{LinkState::down});
  const auto unknown = run.try_look_up(topic);
  REQUIRE(!unknown.has_value());
  CHECK(unknown.error().disposition == Disposition::retry);
  CHECK(run.deliveries.size() == 10);
  CHECK(!run.fixture.log.empty());

  cluster.start();
  run.await_reports(20);
  CHECK(run.links == std::vector{LinkState::down, LinkState::up});
  const auto stored = run.fixture.stored(topic);
  REQUIRE(stored.size() == 20);
  for (std::size_t i = 0; i < 20; ++i) CHECK(stored[i].body == std::to_string(i));

  cluster.pause();  // connections stay open, nothing answers
  for (std::size_t i = 20; i < 30; ++i) run.publish(*messages[i], i);
  run.fixture.run_a_while();
  CHECK(run.deliveries.size() == 20);
  run.fixture.broker().purge();
  run.await_reports(30);
  run.check_reported_once(30);
  for (std::size_t i = 20; i < 30; ++i) {
    REQUIRE(run.deliveries[i].refusal);
    CHECK(*run.deliveries[i].refusal == Refusal::unsent);
  }
  for (std::size_t i = 30; i < 40; ++i) run.publish(*messages[i], i);
  bool restarted = false;
  run.fixture.broker().restart([&](const Status& status) { restarted = status.has_value(); });
  REQUIRE(run.fixture.until([&] { return restarted; }));
  run.check_reported_once(40);
  cluster.resume();
  const OwnedMessage last{topic, "k", "last"};
  run.publish(last, 40);
  run.await_reports(41);
  CHECK(!run.deliveries.back().refusal);
  CHECK(run.fatals.empty());
}

TEST_CASE(
    "missing rights on a topic hold that topic: hidden ones look forbidden, read-only ones refuse the "
    "message") {
  if (skipped_on_mock()) return;
  KafkaCluster cluster{
      {.settings = {"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                    "super.users=User:ANONYMOUS"},
       .script_options = {"--tls-sasl"}}};
  const auto hidden = cluster.new_topic("hidden");
  const auto readable = cluster.new_topic("readable");
  cluster.run_tool(
      {"acls", "--add", "--allow-principal", "User:outbox", "--operation", "Describe", "--topic", readable});
  // Some topic must be writable, or the cluster gives an idempotent producer no id.
  const auto writable = cluster.new_topic("writable");
  cluster.run_tool({"acls", "--add", "--allow-principal", "User:outbox", "--producer", "--topic", writable});
  relay::KafkaOptions options;
  options.properties = login_of(cluster);
  Run run{cluster, options};
  CHECK(run.look_up(hidden).state == TopicState::forbidden);
  const auto unread = run.look_up(readable);
  CHECK(unread.state == TopicState::present);
  CHECK(unread.reason.find("max.message.bytes") != std::string::npos);  // that it is only assumed
  const OwnedMessage message{readable, "k", "v"};
  run.publish(message, 0);
  run.await_reports(1);
  REQUIRE(run.deliveries[0].refusal);
  CHECK(*run.deliveries[0].refusal == Refusal::topic);
  CHECK(run.fatals.empty());
}
