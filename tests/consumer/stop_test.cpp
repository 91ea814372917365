// How long stop() takes where somebody does not answer: a frozen database, a silent network, a lock, a frozen
// Kafka, a handler. Each consumer here would wait forever if it waited for the other side.

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <mutex>

#include "kafka_letters.hpp"
#include "service_database.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/fault_proxy.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

constexpr Millis drain{500};
constexpr Millis cancelled{2000};  // asked to cancel, then its connection given up
constexpr Millis kafka_away{10'000};
constexpr Millis own_statement{5000};  // that the library waits for an answer to a short one of its own
constexpr Millis slack{3000};          // of a busy machine
constexpr Millis hopeless{60'000};

/// Does something when a test ends, however it ends: before the consumers that would wait for it.
struct AtEnd {
  std::function<void()> last;
  ~AtEnd() { last(); }
};

struct Log {
  std::mutex mutex;
  std::string lines;
  std::function<void(std::string_view)> sink() {
    return [this](std::string_view line) {
      const std::lock_guard lock(mutex);
      lines.append(line).append("\n");
    };
  }
  bool has(std::string_view text) {
    const std::lock_guard lock(mutex);
    return lines.find(text) != std::string::npos;
  }
};

ConsumerOptions options(const std::string& postgres, KafkaCluster& kafka, const std::string& topic,
                        Log& log) {
  return {.name = topic,
          .postgres = postgres,
          .kafka = {{"bootstrap.servers", kafka.bootstrap()}},
          .topics = {topic},
          .horizon_check = horizon_check(kafka),
          .drain_timeout = drain,
          .log = log.sink()};
}

void await(const std::string& what, const std::function<bool()>& holds) {
  eventually(what, holds, Millis{40'000});
}

/// From the wish to the end of run().
Millis time_to_stop(RunningConsumer& consumer) {
  const auto start = std::chrono::steady_clock::now();
  consumer.ask_to_stop();
  eventually(
      "it ends", [&] { return consumer.ended(); }, hopeless);
  const auto took = std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - start);
  MESSAGE("stopped after " << took.count() << " ms");
  return took;
}

std::string through(std::string uri, std::uint16_t port) {
  const auto colon = uri.rfind(':');
  return uri.replace(colon + 1, uri.find('/', colon) - colon - 1, std::to_string(port));
}

std::uint16_t port_of(const std::string& uri) {
  return static_cast<std::uint16_t>(std::stoi(uri.substr(uri.rfind(':') + 1)));
}

}  // namespace

TEST_CASE(
    "PostgreSQL freezes amid a handler's statement or before its COMMIT: stop ends, and it counts once") {
  KafkaCluster& kafka = KafkaCluster::shared();
  PostgresServer server;
  for (const bool at_commit : {false, true}) {
    CAPTURE(at_commit);
    ServiceDatabase db({}, server.uri());
    const auto topic = kafka.new_topic("frozen", 1);
    send(kafka.bootstrap(), topic, {letter(v7(1))});
    std::atomic<bool> frozen = false;
    const auto freeze_once = [&] {
      if (frozen.exchange(true)) return;
      server.pause();
    };
    const Handler handler = [&](Transaction& tx, const Message& m) {
      if (!at_commit) freeze_once();
      record_effect(tx, m);
      if (at_commit) freeze_once();
    };
    Log log;
    {
      RunningConsumer consumer(options(db.database.uri(), kafka, topic, log), handler);
      const AtEnd resume{[&] { server.resume(); }};
      await("it is frozen", [&] { return frozen.load(); });
      CHECK(time_to_stop(consumer) < drain + cancelled + slack);
      CHECK(consumer.error() == "");
    }
    RunningConsumer again(options(db.database.uri(), kafka, topic, log), handler);
    await("it counts", [&] { return db.effects() == 1 && again.counters().batches > 0; });
    again.stop();
    CHECK(db.effects() == 1);
  }
}

TEST_CASE("PostgreSQL is silent while a consumer starts or claims a partition: it says so, and stop ends") {
  KafkaCluster& kafka = KafkaCluster::shared();
  ServiceDatabase db;
  for (const auto& [statement, says] : std::vector<std::pair<std::string, std::string>>{
           {"inbox_register", "database_away"}, {"inbox_offset_claim", "claim_waits"}}) {
    CAPTURE(statement);
    FaultProxy proxy(port_of(db.database.uri()));
    proxy.inflict_when({.kind = Fault::Kind::blackhole, .toward = Toward::server}, statement);
    const auto topic = kafka.new_topic("silent", 1);
    Log log;
    auto wanted = options(through(db.database.uri(), proxy.port()), kafka, topic, log);
    wanted.offsets = Offsets::database;
    wanted.maintain_interval = std::chrono::seconds{0};
    {
      RunningConsumer consumer(wanted, record_effect);
      const AtEnd heal{[&] { proxy.heal(); }};
      await("it is silent", [&] { return !proxy.waiting(); });
      CHECK(time_to_stop(consumer) < own_statement + slack);
    }
    proxy.inflict_when({.kind = Fault::Kind::blackhole, .toward = Toward::server}, statement);
    RunningConsumer consumer(wanted, record_effect);
    const AtEnd heal{[&] { proxy.heal(); }};
    await("it says so", [&] { return log.has(says) && log.has("did not answer in time"); });
    send(kafka.bootstrap(), topic, {letter(v7(1))});
    await("it goes on by another connection", [&] { return consumer.counters().fresh == 1; });
  }
}

TEST_CASE("the upkeep waits for a lock that somebody keeps, or for a frozen server: stop ends") {
  KafkaCluster& kafka = KafkaCluster::shared();
  PostgresServer server;
  ServiceDatabase db({}, server.uri());
  auto holder = db.database.session();
  const auto waiting =
      "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'outbox:%' AND wait_event = "
      "'advisory'";
  for (const bool freezes : {false, true}) {
    CAPTURE(freezes);
    const auto topic = kafka.new_topic("upkeep", 1);
    must(holder.exec("BEGIN"));
    must(
        holder.exec("SELECT pg_advisory_xact_lock(hashtextextended('outbox_ensure_partitions', "
                    "hashtext('public')))"));
    Log log;
    RunningConsumer consumer(options(db.database.uri(), kafka, topic, log), record_effect);
    const AtEnd let_go{[&] {
      if (freezes) server.resume();
      must(holder.exec("ROLLBACK"));
    }};
    await("the upkeep waits", [&] { return db.number(waiting) == 1; });
    await("the consumer works", [&] { return log.has("partition_assigned"); });
    if (freezes) server.pause();
    CHECK(time_to_stop(consumer) < drain + cancelled + slack);
  }
}

TEST_CASE("Kafka freezes before offsets are committed: stop ends within ten seconds and what a batch needs") {
  if (!KafkaCluster::shared().real()) return;
  KafkaCluster kafka;
  ServiceDatabase db;
  const auto topic = kafka.new_topic("mute", 1);
  send(kafka.bootstrap(), topic, {letter(v7(1))});
  std::atomic<bool> frozen = false;
  Log log;
  auto wanted = options(db.database.uri(), kafka, topic, log);
  wanted.commit_interval = Millis{3'600'000};
  RunningConsumer consumer(wanted, [&](Transaction& tx, const Message& m) {
    record_effect(tx, m);
    kafka.pause();
    frozen = true;
  });
  const AtEnd resume{[&] { kafka.resume(); }};
  await("it is frozen and the batch is through", [&] { return frozen && consumer.counters().fresh == 1; });
  CHECK(time_to_stop(consumer) < drain + kafka_away + slack);
  CHECK(log.has("commit_failed"));
  CHECK(log.has("kafka_close_given_up"));
  CHECK(db.effects() == 1);
}

TEST_CASE("Kafka freezes while a consumer asks for the retention of a topic that is not there: stop ends") {
  if (!KafkaCluster::shared().real()) return;
  KafkaCluster kafka;
  ServiceDatabase db;
  const auto topic = kafka.new_topic("there", 1);
  Log log;
  auto wanted = options(db.database.uri(), kafka, topic, log);
  wanted.topics.push_back(KafkaCluster::unique_topic("missing"));
  RunningConsumer consumer(wanted, record_effect);
  const AtEnd resume{[&] { kafka.resume(); }};
  await("it works", [&] { return log.has("partition_assigned") && log.has("topic_missing"); });
  kafka.pause();
  CHECK(time_to_stop(consumer) < drain + kafka_away + slack);
}

TEST_CASE(
    "Kafka is silent while a member's partitions are assigned: it waits, and goes on once Kafka is back") {
  if (!KafkaCluster::shared().real()) return;
  KafkaCluster kafka;
  ServiceDatabase db;
  const auto topic = kafka.new_topic("silent", 1);
  send(kafka.bootstrap(), topic, {letter(v7(1))});
  Log log;
  auto wanted = options(db.database.uri(), kafka, topic, log);
  wanted.offsets = Offsets::database;
  // Whoever holds the claim's row holds the assignment between joining the group and asking for its offsets.
  must(db.session.exec("SELECT inbox_offset_claim('" + topic + "', '" + topic + "', 0)"));
  must(db.session.exec("BEGIN"));
  must(db.session.exec("UPDATE inbox_offset SET changed_at = now()"));
  RunningConsumer consumer(wanted, record_effect);
  const AtEnd resume{[&] { kafka.resume(); }};
  await("it waits for the claim", [&] { return log.has("claim_waits"); });
  kafka.pause();
  must(db.session.exec("ROLLBACK"));
  eventually(
      "it says that it waits for Kafka", [&] { return log.has("start_waits") || consumer.ended(); },
      Millis{90'000});
  CHECK(consumer.error() == "");
  kafka.resume();
  eventually(
      "it goes on", [&] { return consumer.counters().fresh == 1 || consumer.ended(); }, Millis{90'000});
  CHECK(consumer.counters().fresh == 1);
}

TEST_CASE("the answer to a new group's first commit gets lost: stop ends") {
  if (!KafkaCluster::shared().real()) return;
  FaultProxy proxy;
  KafkaCluster kafka(
      {.settings = {"advertised.listeners=PLAINTEXT://127.0.0.1:" + std::to_string(proxy.port())}});
  proxy.lead_to(port_of(kafka.bootstrap()));
  ServiceDatabase db;
  const auto topic = kafka.new_topic("first", 1);
  send(kafka.bootstrap(), topic, {letter(v7(1))});
  proxy.inflict_when({.kind = Fault::Kind::blackhole, .toward = Toward::client}, "outbox:born=");
  Log log;
  auto wanted = options(db.database.uri(), kafka, topic, log);
  wanted.start_at = StartAt::end;
  RunningConsumer consumer(wanted, record_effect);
  const AtEnd heal{[&] {
    kafka.resume();
    proxy.heal();
  }};
  await("it is lost", [&] { return !proxy.waiting(); });
  kafka.pause();  // so that no other connection helps
  CHECK(time_to_stop(consumer) < own_statement + kafka_away + slack);
}

TEST_CASE(
    "a handler does not return from code of its own: its partition goes to others, and run() waits for it") {
  KafkaCluster& kafka = KafkaCluster::shared();
  ServiceDatabase db;
  const auto topic = kafka.new_topic("stuck", 1);
  send(kafka.bootstrap(), topic, {letter(v7(1))});
  std::promise<void> go;
  const auto gone = go.get_future().share();
  std::atomic<bool> inside = false, released = false;
  Log log, others;
  RunningConsumer consumer(options(db.database.uri(), kafka, topic, log),
                           [&](Transaction& tx, const Message& m) {
                             record_effect(tx, m);
                             inside = true;
                             gone.wait();
                           });
  const AtEnd release{[&] {
    if (!released.exchange(true)) go.set_value();
  }};
  await("it is inside", [&] { return inside.load(); });
  consumer.ask_to_stop();
  await("it says so", [&] { return log.has("stop_waits"); });
  RunningConsumer other(options(db.database.uri(), kafka, topic, others), record_effect);
  await("the other has its partition", [&] { return others.has("partition_assigned"); });
  await("and does its work", [&] { return other.counters().fresh == 1; });
  CHECK_FALSE(consumer.ended());
  released = true;
  go.set_value();
  await("it ends", [&] { return consumer.ended(); });
  CHECK(consumer.error() == "");
  CHECK(db.effects() == 1);
}
