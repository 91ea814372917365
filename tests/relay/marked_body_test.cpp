// What a message carries is its own affair: whatever becomes of it, its body stands in the table's column and
// in Kafka, and nowhere else.

#include <doctest/doctest.h>

#include <vector>

#include "relay/core/kafka/errors.hpp"
#include "tests/relay/once.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

const std::string mark = "4111111111111111";      // a card's number
const std::string marked_hex = "34313131313131";  // as the digits of bytes

// Loud: everything that librdkafka and the relay can say is said.
RigOptions loud(RigOptions options = {}) {
  options.admin = admin_socket;
  options.process = "log: { level: debug }\n";
  options.properties += ", debug: 'msg,protocol,broker,topic,eos'";
  return options;
}

void insert(RelayRig& rig, const std::string& topic, const std::string& key_sql, int repeats,
            const std::string& headers = "{}") {
  rig.ask("INSERT INTO outbox_msg (topic, msg_key, headers, body) VALUES ($1, " + key_sql +
              ", $2, to_json(repeat('card " + mark + " ', $3)))",
          pg::Params{}.text(topic).untyped(headers).i32(repeats));
}

void holds_no_body(const std::string& where, const std::string& text) {
  CAPTURE(where);
  const bool found = text.find(mark) != std::string::npos || text.find(marked_hex) != std::string::npos;
  const auto at = std::min(text.find(mark), text.find(marked_hex));
  CHECK_MESSAGE(!found, text.substr(at == std::string::npos ? 0 : at - std::min<std::size_t>(at, 300), 400));
}

// The log, each page, what the commands print, and every column of every table but the body itself.
void nothing_shows_a_body(RelayRig& rig) {
  for (const char* target : {"/", "/status", "/metrics", "/readyz"})
    holds_no_body(target, rig.shown(target).body);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"dead", "list"}, {"status"}})
    holds_no_body(words.front(), rig.outboxd(words).output);
  holds_no_body("the log", rig.logs());
  CHECK(rig.ask("SELECT string_agg(c.oid::regclass::text, ', ') FROM pg_class c WHERE relkind IN ('r', 'p') "
                "AND relnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema') AND "
                "(xpath('/row/n/text()', query_to_xml(format('SELECT count(*) AS n FROM %s t WHERE "
                "(to_jsonb(t) - ''body'')::text LIKE ''%%" +
                mark + "%%''', c.oid::regclass), false, true, '')))[1]::text <> '0'") == "null");
}

void is_refused_in_silence(RigOptions options) {
  KafkaCluster& kafka = KafkaCluster::shared();
  RelayRig rig(loud(std::move(options)));
  const std::string compacted = kafka.new_topic("marked", 1, {{"cleanup.policy", "compact"}});
  const std::string plain = kafka.new_topic("marked");
  insert(rig, compacted, "NULL", 1);    // Kafka's own check refuses it
  insert(rig, compacted, "NULL", 300);  // so long that its reason would be cut
  insert(rig, plain, "'large'", 100'000);
  insert(rig, plain, "'forged'", 1, R"({"outbox-id": "mine"})");
  insert(rig, "no topic at all", "'name'", 1);
  insert(rig, KafkaCluster::unique_topic("missing"), "'k'", 1);
  insert(rig, plain, "'fine'", 1);
  rig.start({.lanes = 2});
  rig.await(
      "four die, two are held, one is sent",
      [&] { return rig.count("DEAD") == "4" && rig.count("HELD") == "2" && rig.count("SENT") == "1"; },
      Millis{90'000});
  // In Kafka's words, which are the same for each message.
  CHECK(rig.ask("SELECT count(*), count(DISTINCT last_error) FROM outbox_msg WHERE topic = $1 AND "
                "last_error LIKE '%INVALID\\_RECORD%'",
                pg::Params{}.text(compacted)) == "2|1");
  nothing_shows_a_body(rig);
}

}  // namespace

TEST_CASE("whatever refuses a message, its body is in no log, page, command or table beside its own column") {
  if (!KafkaCluster::shared().real()) return;
  is_refused_in_silence({});
}

TEST_CASE("exactly once: whatever refuses a message, its body is in no log, page, command or table either") {
  if (!real_kafka()) return;
  is_refused_in_silence(exactly_once());
}

TEST_CASE("each error that a broker can answer is told without the body of the message that it refuses") {
  KafkaCluster kafka({.kind = KafkaKind::mock});
  RigOptions options = loud();
  options.kafka = kafka.bootstrap();
  RelayRig rig(std::move(options));
  std::vector<int> errors;
  for (const auto& error : relay::kafka_errors())
    if (error.code > 0 || error.name == "UNKNOWN") errors.push_back(error.code);
  const int count = static_cast<int>(errors.size());
  for (int i = 0; i < count; ++i) insert(rig, kafka.new_topic("marked"), "'k'", i % 2 == 0 ? 1 : 300);
  kafka.fail_requests(0, errors);  // Produce
  rig.start();
  rig.await(
      "the refused are judged, and those that may pass are sent",
      [&] { return rig.count("PENDING") == "0" && rig.count("HELD") != "0"; }, Millis{90'000});
  nothing_shows_a_body(rig);
}
