// One file of cases, two implementations: the library, and the SQL functions through the Python example.

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <stdexcept>

#include "kafka_letters.hpp"
#include "letters.hpp"
#include "outbox/inbox.hpp"
#include "service_database.hpp"
#include "tests/support/kafka.hpp"
#include "tests/support/process.hpp"

using namespace outbox;
using namespace outbox::test;
using nlohmann::json;

namespace {

struct CaseDatabase : ServiceDatabase {
  CaseDatabase() { must(session.exec("CREATE TABLE case_effect (consumer text)")); }
};

json cases() {
  return json::parse(read_file(OUTBOX_CASES));
}

std::string from_base64(const std::string& text) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned group = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    group = (group << 6) | static_cast<unsigned>(digits.find(c));
    if ((bits += 6) < 8) continue;
    out.push_back(static_cast<char>(group >> (bits -= 8) & 0xff));
  }
  return out;
}

std::optional<std::string> to_bytes(const json& value) {
  if (value.is_null()) return std::nullopt;
  if (!value.is_object()) return value.get<std::string>();
  if (!value.contains("times")) return from_base64(value["base64"]);
  std::string out;
  for (int i = value["times"]; i > 0; --i) out += value["repeat"].get<std::string>();
  return out + value["then"].get<std::string>();
}

Letter to_letter(const json& step) {
  Letter out{.topic = step.value("topic", "t"),
             .partition = step.value("partition", 0),
             .offset = step.value("offset", 0),
             .key = to_bytes(step["key"]),
             .body = to_bytes(step["body"]),
             .attempt = 10};
  for (const auto& header : step["headers"])
    out.headers.emplace_back(header[0].get<std::string>(), to_bytes(header[1]));
  return out;
}

/// As the SQL functions put it: one word for verdict and fate.
std::string word(const Outcome& outcome, const std::string& handler) {
  if (outcome.fate == Fate::parked) return "parked";
  if (outcome.fate == Fate::dead && outcome.verdict == Verdict::fresh)
    return handler == "reject" ? "rejected" : "failed";
  return std::string(to_string(outcome.verdict));
}

InboxOptions options_for(const CaseDatabase& db, const json& one, const std::string& consumer) {
  auto options = db.inbox(consumer);
  options.guard = one.value("guard", false) ? Guard::by_seq : Guard::none;
  return options;
}

Handler handler_of(const std::vector<json>& steps, const std::string& consumer) {
  return [=](Transaction& tx, const Message& m) {
    static_cast<void>(tx.exec("INSERT INTO case_effect VALUES ($1)", consumer));
    for (const auto& step : steps) {
      if (step.value("offset", 0) != m.offset()) continue;
      if (step.value("handler", "") == "fail") throw std::runtime_error("no account");
      if (step.value("handler", "") == "reject") throw Reject("never");
    }
  };
}

/// Runs deliveries that stand together as one batch, or each by itself.
json run(CaseDatabase& db, const json& one, const std::string& consumer, bool batches) {
  Inbox inbox(options_for(db, one, consumer));
  inbox.check();
  json verdicts = json::array();
  std::vector<json> waiting;
  const auto deliver = [&] {
    std::vector<Letter> letters;
    for (const auto& step : waiting) letters.push_back(to_letter(step));
    const auto outcomes = inbox.process(records(letters), handler_of(waiting, consumer));
    for (std::size_t i = 0; i < outcomes.size(); ++i)
      verdicts.push_back(word(outcomes[i], waiting[i].value("handler", "")));
    waiting.clear();
  };
  for (const auto& step : one["steps"]) {
    if (step.contains("do")) {
      if (!waiting.empty()) deliver();
      must(db.session.exec("UPDATE inbox_consumer SET low_water = '2030-01-01' WHERE consumer = '" +
                           consumer + "'"));
      continue;
    }
    waiting.push_back(step);
    if (!batches) deliver();
  }
  if (!waiting.empty()) deliver();
  return {{"verdicts", verdicts},
          {"effects", db.number("SELECT count(*) FROM case_effect WHERE consumer = '" + consumer + "'")}};
}

json expected(const json& one) {
  json verdicts = json::array();
  for (const auto& step : one["steps"])
    if (step.contains("verdict")) verdicts.push_back(step["verdict"]);
  return {{"verdicts", verdicts}, {"effects", one["effects"]}};
}

/// What an operator finds, by consumer, without what names the consumer.
std::string left_behind(CaseDatabase& db, const std::string& consumer) {
  return db.text(
      "SELECT coalesce(string_agg(concat_ws(' ', topic, partition, \"offset\", verdict, parked, headers, "
      "encode(body, 'hex'), encode(msg_key, 'hex'), msg_id), E'\\n' ORDER BY topic, \"offset\"), '') FROM "
      "dead_msgs WHERE consumer = '" +
      consumer + "'");
}

std::string states(CaseDatabase& db, const std::string& consumer) {
  return db.text(
      "SELECT coalesce(string_agg(concat_ws(' ', msg_id, state, topic, \"offset\"), E'\\n' ORDER BY msg_id), "
      "'') "
      "FROM processed_msgs WHERE consumer = '" +
      consumer + "'");
}

}  // namespace

TEST_CASE("the shared cases hold in the library, message by message and in batches") {
  CaseDatabase db;
  int n = 0;
  for (const auto& one : cases()) {
    for (const bool batches : {false, true}) {
      CAPTURE(one["name"].get<std::string>());
      CAPTURE(batches);
      const auto consumer = "library case " + std::to_string(n) + (batches ? " in batches" : "");
      CHECK(run(db, one, consumer, batches) == expected(one));
    }
    ++n;
  }
}

TEST_CASE("the SQL functions answer as the library does, and leave the same behind") {
  CaseDatabase db;
  const auto finished = run_program(
      OUTBOX_PYTHON, {.args = {OUTBOX_RUN_CASES, db.database.uri(), OUTBOX_CASES}}, Millis{60'000});
  INFO(finished.errors);
  REQUIRE(finished.status.code == 0);
  const auto answers = json::parse(finished.output);
  const auto all = cases();
  REQUIRE(answers.size() == all.size());
  for (std::size_t n = 0; n < all.size(); ++n) {
    CAPTURE(all[n]["name"].get<std::string>());
    CHECK(answers[n] == expected(all[n]));
    const auto library = "library case " + std::to_string(n), python = "python case " + std::to_string(n);
    CHECK(run(db, all[n], library, false) == expected(all[n]));
    CHECK(left_behind(db, library) == left_behind(db, python));
    CHECK(states(db, library) == states(db, python));
  }
}

TEST_CASE("inbox_begin refuses a snapshot that can't see what others commit, and makes the commit durable") {
  CaseDatabase db;
  const std::string begin = "SELECT inbox_begin('c', gen_random_uuid(), sha256(''), 't', 0, 0)";
  must(db.session.exec("BEGIN ISOLATION LEVEL REPEATABLE READ"));
  const auto refused = db.session.exec(begin);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == "0A000");
  must(db.session.exec("ROLLBACK"));
  must(db.session.exec("SET synchronous_commit = off"));
  must(db.session.exec("BEGIN"));
  must(db.session.exec(begin));
  CHECK(db.text("SHOW synchronous_commit") == "on");
  must(db.session.exec("ROLLBACK"));
}

TEST_CASE(
    "inbox_park refuses what has no place: a verdict it does not know, or a failure that was not begun") {
  CaseDatabase db;
  const auto park = [&](const std::string& id, const std::string& verdict) {
    const auto done = db.session.exec("SELECT inbox_park('c', " + id +
                                      ", sha256(''), 't', 0, 0, NULL, NULL, '[]', '" + verdict + "')");
    return done ? std::string("accepted") : done.error().code;
  };
  CHECK(park("gen_random_uuid()", "fresh") == "22023");
  CHECK(park("NULL", "failed") == "22023");
  CHECK(park("gen_random_uuid()", "malformed") == "22023");
  CHECK(park("gen_random_uuid()", "failed") == "55000");
  CHECK(park("NULL", "malformed") == "accepted");
}

TEST_CASE("the ledger in Python applies each message once, whatever comes twice") {
  KafkaCluster& kafka = KafkaCluster::shared();
  const auto topic = kafka.new_topic("python", 2);
  ServiceDatabase db;
  must(db.session.exec("CREATE TABLE ledger (account text PRIMARY KEY, cents bigint NOT NULL)"));
  std::vector<Letter> letters;
  for (int i = 0; i < 60; ++i) {
    letters.push_back(
        letter(v7(i % 40), R"({"account":"a)" + std::to_string(i % 40 % 4) + R"(","cents":1})"));
    letters.back().partition = i % 2;
    letters.back().key = "a" + std::to_string(i % 4);
  }
  send(kafka.bootstrap(), topic, letters);
  Process ledger(OUTBOX_PYTHON,
                 {.args = {OUTBOX_PYTHON_LEDGER, db.database.uri(), kafka.bootstrap(), topic, topic},
                  .env = {{"PYTHONDONTWRITEBYTECODE", "1"}}});
  const auto passed = [&] {
    return committed(kafka.bootstrap(), topic, topic, 0) == 30 &&
           committed(kafka.bootstrap(), topic, topic, 1) == 30;
  };
  eventually("the offsets passed", passed, Millis{40'000});
  ledger.kill(SIGTERM);
  CHECK(ledger.wait().code == 0);
  CHECK(db.number("SELECT sum(cents)::bigint FROM ledger") == 40);
}

TEST_CASE(
    "the ledger in Python ends with the reason where Kafka has deleted what it had not read, and goes on "
    "from "
    "its offset else") {
  KafkaCluster& kafka = KafkaCluster::shared();
  if (!kafka.real()) return;
  const auto topic = kafka.new_topic("python-gap", 1, {{"retention.ms", "3600000"}});
  ServiceDatabase db;
  must(db.session.exec("CREATE TABLE ledger (account text PRIMARY KEY, cents bigint NOT NULL)"));
  const auto send_cents = [&](int from, int to) {
    std::vector<Letter> letters;
    for (int i = from; i < to; ++i) letters.push_back(letter(v7(i), R"({"account":"a","cents":1})"));
    send(kafka.bootstrap(), topic, letters);
  };
  const auto cents = [&] { return db.number("SELECT coalesce(sum(cents), 0)::bigint FROM ledger"); };
  const auto ledger = [&] {
    return Process(OUTBOX_PYTHON,
                   {.args = {OUTBOX_PYTHON_LEDGER, db.database.uri(), kafka.bootstrap(), topic, topic},
                    .env = {{"PYTHONDONTWRITEBYTECODE", "1"}}});
  };
  send_cents(0, 5);
  for (const int all : {5, 10}) {
    Process running = ledger();
    eventually(
        "a new group begins at the beginning, and a known one goes on",
        [&] { return cents() == all && committed(kafka.bootstrap(), topic, topic, 0) == all; },
        Millis{40'000});
    running.kill(SIGTERM);
    CHECK(running.wait().code == 0);
    if (all == 5) send_cents(5, 10);
  }
  send_cents(10, 20);
  delete_records(kafka.bootstrap(), topic, 0, 15);
  Process ended = ledger();
  CHECK(ended.wait(Millis{60'000}).code == 1);
  CHECK_MESSAGE(ended.errors().find("_AUTO_OFFSET_RESET") != std::string::npos, ended.errors());
  CHECK(cents() == 10);
}

TEST_CASE("the ledger in Python does the upkeep of its tables, and keeps the horizon that somebody set") {
  KafkaCluster& kafka = KafkaCluster::shared();
  const auto topic = kafka.new_topic("python-upkeep");
  ServiceDatabase db;
  must(db.session.exec("CREATE TABLE ledger (account text PRIMARY KEY, cents bigint NOT NULL)"));
  must(db.session.exec("SELECT inbox_register('" + topic + "', interval '90 days')"));
  const auto days = [&] {
    return db.number("SELECT count(*) FROM pg_inherits WHERE inhparent = 'processed_msgs'::regclass");
  };
  const auto all = days();
  must(
      db.session.exec("DO $$ BEGIN EXECUTE (SELECT 'DROP TABLE ' || max(inhrelid::regclass::text) FROM "
                      "pg_inherits WHERE inhparent = 'processed_msgs'::regclass AND "
                      "inhrelid::regclass::text ~ '[0-9]$'); END $$"));
  REQUIRE(days() == all - 1);
  Process ledger(OUTBOX_PYTHON,
                 {.args = {OUTBOX_PYTHON_LEDGER, db.database.uri(), kafka.bootstrap(), topic, topic},
                  .env = {{"PYTHONDONTWRITEBYTECODE", "1"}}});
  eventually(
      "the day is there again", [&] { return days() == all; }, Millis{40'000});
  ledger.kill(SIGTERM);
  CHECK(ledger.wait().code == 0);
  CHECK(db.text("SELECT horizon FROM inbox_consumer WHERE consumer = '" + topic + "'") == "90 days");
}
