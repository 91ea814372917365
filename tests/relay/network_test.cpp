// What a network does to the real outboxd: connections that are reset, cut, or silently dead, on the side of
// PostgreSQL and of Kafka, at the worst moments.

#include <doctest/doctest.h>

#include "tests/relay/numbered.hpp"
#include "tests/support/fault_proxy.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

using Kind = Fault::Kind;

// Of the last address in a uri or a bootstrap list.
// A rig whose relay reaches PostgreSQL by a proxy.
struct ProxiedRig {
  explicit ProxiedRig(RigOptions options)
      : rig(std::move(options)), proxy(port_of(rig.uri())), uri(through(rig.uri(), proxy.port())) {}

  static std::string through(std::string uri, std::uint16_t port) {
    const std::size_t colon = uri.rfind(':');
    return uri.replace(colon + 1, uri.find('/', colon) - colon - 1, std::to_string(port));
  }
  Process& start() { return rig.start({.uri = uri}); }

  RelayRig rig;
  FaultProxy proxy;
  std::string uri;
};

// How long the rows behind the first `from` waited, in milliseconds: the slowest, or the fastest.
int waited(RelayRig& rig, const std::string& which, int from) {
  return std::stoi(
      rig.ask("SELECT coalesce(ceil(1000 * extract(epoch FROM " + which +
                  "(sent_at - created_at))), 60000) FROM (SELECT * FROM outbox_msg ORDER BY id OFFSET $1) m",
              pg::Params{}.i32(from)));
}

void insert_one_by_one(RelayRig& rig, const std::string& topic, int& number, Millis pace) {
  insert_numbered(rig, topic, number + 1, number + 1);
  ++number;
  const MonoTime next = std::chrono::steady_clock::now() + pace;
  rig.await("the pace", [&] { return std::chrono::steady_clock::now() >= next; });
}

}  // namespace

TEST_CASE(
    "the listening connection dies in silence: rows go out within the poll interval, no lane is lost, it is "
    "made again and counted") {
  ProxiedRig at{{.source = "poll_interval: 1s", .admin = std::string{admin_socket}, .ttl = "3s"}};
  RelayRig& rig = at.rig;
  const std::string topic = KafkaCluster::shared().new_topic("deaf", 3);
  Process& relay = at.start();
  int number = 0;
  insert_one_by_one(rig, topic, number, Millis{0});
  rig.eventually_none_pending();

  const int connections = at.proxy.accepted();
  REQUIRE(at.proxy.inflict({.kind = Kind::blackhole, .toward = Toward::both}, "LISTEN") == 1);
  rig.await("a new connection in its place", [&] {
    insert_one_by_one(rig, topic, number, Millis{200});
    return at.proxy.accepted() > connections;
  });
  rig.eventually_none_pending();
  CHECK(number > 10);
  CHECK(waited(rig, "max", 1) < 2000);
  CHECK(relay.errors().find("lanes_lost") == std::string::npos);
  rig.await("it is counted", [&] {
    return rig.shown("/metrics").body.find("outboxd_postgres_losses_total{pipeline=\"rig\"} 1") !=
           std::string::npos;
  });

  const int deaf = number;
  rig.await("a hint wakes it again", [&] {
    insert_one_by_one(rig, topic, number, Millis{300});
    return waited(rig, "min", deaf) < 200;
  });
  rig.eventually_none_pending();
  CHECK(complete_and_in_order(KafkaCluster::shared(), topic, number) == 0);
}

TEST_CASE(
    "PostgreSQL's connections break or fall silent in the midst of a claim or a mark: nothing lost, nothing "
    "twice") {
  ProxiedRig at{{.source = "poll_interval: 100ms",
                 .postgres = ", statement_deadline: 1s, prepared: unnamed",
                 .ttl = "60s"}};
  RelayRig& rig = at.rig;
  const std::string topic = KafkaCluster::shared().new_topic("cut", 3);
  Process& relay = at.start();
  int number = 0;
  for (const char* text : {"outboxd.read_at", "kafka_offset = s.kafka_offset"}) {
    for (const Fault& fault : {Fault{.kind = Kind::reset}, Fault{.kind = Kind::truncate, .bytes = 3},
                               Fault{.kind = Kind::blackhole, .toward = Toward::server},
                               Fault{.kind = Kind::blackhole, .toward = Toward::client}}) {
      CAPTURE(text);
      CAPTURE(static_cast<int>(fault.kind));
      const int connections = at.proxy.accepted();
      at.proxy.inflict_when(fault, text);
      insert_numbered(rig, topic, number + 1, number + 300);
      number += 300;
      rig.await("the fault struck", [&] { return !at.proxy.waiting(); });
      rig.await("the relay made a new connection", [&] { return at.proxy.accepted() > connections; });
      rig.eventually_none_pending(Millis{30'000});
    }
  }
  CHECK(complete_and_in_order(KafkaCluster::shared(), topic, number) == 0);
  CHECK(relay.running());
}

TEST_CASE("Kafka's connections are reset, cut, slowed or silent under load: nothing lost, keys in order") {
  if (!KafkaCluster::shared().real()) return;
  FaultProxy proxy;
  KafkaCluster kafka(
      {.settings = {"advertised.listeners=PLAINTEXT://127.0.0.1:" + std::to_string(proxy.port())}});
  proxy.lead_to(port_of(kafka.bootstrap()));
  RelayRig rig{{.source = "poll_interval: 100ms",
                .kafka = "127.0.0.1:" + std::to_string(proxy.port()),
                .properties = ", socket.timeout.ms: 1500"}};
  const std::string topic = kafka.new_topic("wire", 3);
  Process& relay = rig.start();
  int number = 0;
  const auto load = [&] {
    insert_numbered(rig, topic, number + 1, number + 2000, 100);
    number += 2000;
  };
  load();
  rig.eventually_none_pending(Millis{30'000});
  for (const Fault& fault :
       {Fault{.kind = Kind::reset}, Fault{.kind = Kind::truncate, .bytes = 10},
        Fault{.kind = Kind::truncate, .toward = Toward::server, .bytes = 20'000},
        Fault{.kind = Kind::latency, .toward = Toward::both, .by = Millis{50}},
        Fault{.kind = Kind::half_open}, Fault{.kind = Kind::blackhole, .toward = Toward::server},
        Fault{.kind = Kind::blackhole, .toward = Toward::client}}) {
    CAPTURE(static_cast<int>(fault.kind));
    const int connections = proxy.accepted();
    load();
    REQUIRE(proxy.inflict(fault) > 0);
    load();
    if (fault.kind != Kind::latency)
      rig.await("the relay connects again", [&] { return proxy.accepted() > connections; });
    rig.eventually_none_pending(Millis{30'000});
    proxy.heal();
  }
  const int copies = complete_and_in_order(kafka, topic, number);
  MESSAGE("copies: " << copies);
  CHECK(rig.count("DEAD") == "0");
  CHECK(relay.running());
}

TEST_CASE("the server's time zone changes under a running relay: no lane is lost, and rows go on") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("zones", 3);
  Process& relay = rig.start();
  int number = 0;
  insert_one_by_one(rig, topic, number, Millis{0});
  rig.eventually_none_pending();
  const std::string epochs = rig.ask("SELECT epoch FROM outbox_lease ORDER BY lane");
  const std::string database = rig.ask("SELECT current_database()");
  for (const char* zone : {"Pacific/Kiritimati", "Pacific/Pago_Pago"}) {  // 14 hours ahead, 11 behind
    rig.ask("ALTER DATABASE " + database + " SET timezone = '" + zone + "'");
    rig.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'outboxd%' AND "
        "datname = current_database()");
    const MonoTime until = std::chrono::steady_clock::now() + Millis{2500};  // longer than the lease
    rig.await("its lease would be over", [&] {
      insert_one_by_one(rig, topic, number, Millis{100});
      return std::chrono::steady_clock::now() > until;
    });
  }
  rig.eventually_none_pending();
  CHECK(rig.ask("SELECT epoch FROM outbox_lease ORDER BY lane") == epochs);
  CHECK(relay.errors().find("lanes_lost") == std::string::npos);
  CHECK(complete_and_in_order(KafkaCluster::shared(), topic, number) == 0);
}
