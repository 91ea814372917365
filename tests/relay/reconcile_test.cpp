// `outboxd reconcile`: finds each way in which outbox, Kafka and consumer can differ, names it, finds nothing
// where they agree, and says what it cannot know.

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>

#include "audit.hpp"

using namespace outbox;
using namespace outbox::test;
using nlohmann::json;

namespace {

struct Reconciled {
  int code = 0;
  std::vector<json> findings{};
  json account{};

  // "missing kafka 2, orphan ledger 4": what was found, with the rows' ids.
  [[nodiscard]] std::string found() const {
    std::string out;
    for (const json& f : findings)
      out += (out.empty() ? "" : ", ") + f["finding"].get<std::string>() + " " +
             f["where"].get<std::string>() +
             (f["id"].is_null() ? "" : " " + std::to_string(f["id"].get<std::int64_t>()));
    return out;
  }
  [[nodiscard]] std::int64_t unknown(const std::string& side, const std::string& why) const {
    const json& of = side == "kafka" ? account["kafka"] : account["consumers"][side];
    return of["unknown"].value(why, 0);
  }
  [[nodiscard]] std::int64_t counted(const std::string& side, const std::string& what) const {
    const json& of = side == "kafka" ? account["kafka"] : account["consumers"][side];
    return of["counted"].value(what, 0);
  }
};

Reconciled reconcile(Audit& audit, std::vector<std::string> more = {}) {
  std::vector<std::string> args{"reconcile", "--json", "--consumer", "ledger"};
  args.insert(args.end(), more.begin(), more.end());
  const auto done = audit.rig().outboxd(args);
  INFO(done.errors);
  Reconciled out{.code = done.status.code};
  std::istringstream lines(done.output);
  for (std::string line; std::getline(lines, line);) out.findings.push_back(json::parse(line));
  REQUIRE_FALSE(out.findings.empty());
  out.account = std::move(out.findings.back());
  out.findings.pop_back();
  return out;
}

bool mock() {
  if (KafkaCluster::shared().real()) return false;
  MESSAGE("SKIPPED: a mock cluster neither deletes records nor ends transactions as a real one does");
  return true;
}

// Three messages that agree everywhere, ids 1 to 3 at offsets 0 to 2, then what `spoil` does.
struct Spoilt : Audit {
  explicit Spoilt(const std::string& source = "poll_interval: 100ms",
                  const KafkaCluster::Configs& settings = {})
      : Audit(source, settings) {
    for (const char* body : {"1", "2", "3"}) rows.push_back(send("k", body));
  }
  std::vector<Written> rows{};
};

}  // namespace

TEST_CASE("reconcile: what a relay sent is verified row by row, whatever its key and body") {
  Audit audit;
  audit.write("k", "{\"a\":  1.50}");
  audit.write(std::nullopt, "\"\u00e4\"");
  audit.write("tombstone", std::nullopt);
  audit.rig().start();
  audit.rig().eventually_none_pending();
  audit.ask("UPDATE outbox_msg SET sent_at = now() - interval '1 hour'");
  audit.ask(
      "INSERT INTO processed_msgs (consumer, msg_id, id_time, payload_sha256, topic, partition, \"offset\") "
      "SELECT 'ledger', msg_id, outbox_id_time(msg_id), coalesce(sha256(convert_to(body::text, 'UTF8')), "
      "decode(repeat('00', 32), 'hex')), topic, kafka_partition, kafka_offset FROM outbox_msg");
  const auto done = reconcile(audit, {"--strict"});
  CHECK(done.found() == "");
  CHECK(done.code == 0);
  CHECK(done.account["rows"] == json{{"SENT", 3}});
  CHECK(done.counted("kafka", "verified") == 3);
  CHECK(done.counted("ledger", "applied") == 3);
  CHECK(done.account["unknown"] == 0);
  const auto text = audit.rig().outboxd({"reconcile"});
  CHECK(text.status.code == 0);
  CHECK_MESSAGE(text.output.ends_with("0 missing, 0 repeated, 0 conflicting, 0 orphan; 0 not known\n"),
                text.output);
}

TEST_CASE("reconcile: each discrepancy between outbox and Kafka is found, named, and the only one") {
  Spoilt audit;
  const auto last = audit.rows.back();
  const auto record = audit.record_of(last, "k", "3");
  std::string expected;
  SUBCASE("a SENT row whose offset lies beyond the end") {
    audit.mark(last, 0, 99);
    expected = "missing kafka 3, repeated kafka 3";
  }
  SUBCASE("a SENT row whose record is in another partition") {
    audit.mark(last, 1, 2);
    expected = "missing kafka 3, repeated kafka 3";
  }
  SUBCASE("a SENT row of a partition that the topic does not have") {
    audit.mark(last, 7, 2);
    expected = "missing kafka 3, repeated kafka 3";
  }
  SUBCASE("a SENT row that names no record") {
    audit.ask("UPDATE outbox_msg SET kafka_partition = NULL, kafka_offset = NULL WHERE id = 3");
    expected = "missing kafka 3, repeated kafka 3";
  }
  SUBCASE("a SENT row whose offset holds another message of this outbox") {
    audit.mark(last, 0, 1);
    expected = "conflicting kafka 3, repeated kafka 3";
  }
  SUBCASE("a record with another body than its row") {
    audit.ask("UPDATE outbox_msg SET body = '4' WHERE id = 3");
    expected = "conflicting kafka 3, conflicting ledger 3";
  }
  SUBCASE("a record with another key than its row") {
    audit.ask("UPDATE outbox_msg SET msg_key = 'other' WHERE id = 3");
    expected = "conflicting kafka 3";
  }
  SUBCASE("a record of this outbox without a row") {
    auto stranger = last;
    stranger.id = 12'345;
    audit.publish(audit.record_of(stranger, "k", "3"));
    expected = "orphan kafka 12345";
  }
  SUBCASE("a record that claims a row which is another message") {
    auto forged = last;
    forged.msg_id = audit.rows.front().msg_id;
    audit.publish(audit.record_of(forged, "k", "3"));
    expected = "orphan kafka 3";
  }
  SUBCASE("a record of this outbox whose headers no relay writes") {
    auto odd = record;
    odd.headers[2].second = "yesterday";
    audit.publish(odd);
    expected = "orphan kafka 3";
  }
  SUBCASE("a record whose row was cancelled") {
    const auto row = audit.write("k", "5");
    audit.publish(audit.record_of(row, "k", "5"));
    audit.ask("UPDATE outbox_msg SET status = 'CANCELLED' WHERE id = 4");
    expected = "conflicting kafka 4";
  }
  const auto done = reconcile(audit);
  CHECK(done.found() == expected);
  CHECK(done.code == 1);
}

TEST_CASE("reconcile: a record that stands twice is counted, and a discrepancy where once was promised") {
  Spoilt audit;
  audit.publish(audit.record_of(audit.rows.back(), "k", "3"));
  const auto lenient = reconcile(audit);
  CHECK(lenient.found() == "repeated kafka 3");
  CHECK(lenient.code == 0);
  CHECK(reconcile(audit, {"--strict"}).code == 1);
}

TEST_CASE("reconcile: what is explained is no discrepancy") {
  Spoilt audit;
  SUBCASE("a copy that a replay sent") {
    const auto offset = audit.publish(audit.record_of(audit.rows.back(), "k", "3"));
    audit.mark(audit.rows.back(), 0, offset);
    audit.ask("UPDATE outbox_msg SET generation = 1 WHERE id = 3");
    CHECK(reconcile(audit).counted("kafka", "copies that a replay or a retry explains") == 1);
  }
  SUBCASE("a message that was acknowledged before a crash, and not marked") {
    const auto row = audit.write("k", "5");
    audit.publish(audit.record_of(row, "k", "5"));
    CHECK(reconcile(audit).counted("kafka", "acknowledged and not marked yet") == 1);
  }
  SUBCASE("records of others") {
    auto foreign = audit.record_of(audit.rows.back(), "k", "3");
    foreign.headers.back().second = "somebody else";
    audit.publish(foreign);
    audit.publish({.topic = audit.topic(), .key = "k", .body = "no headers"});
    CHECK(reconcile(audit).counted("kafka", "records of other sources") == 2);
  }
  const auto done = reconcile(audit, {"--strict"});
  CHECK(done.found() == "");
  CHECK(done.code == 0);
}

TEST_CASE("reconcile: each discrepancy between outbox and consumer is found, named, and the only one") {
  Spoilt audit;
  std::string expected;
  SUBCASE("a message that the consumer has not processed") {
    audit.ask("DELETE FROM processed_msgs WHERE \"offset\" = 2");
    audit.ask("UPDATE inbox_consumer SET registered_at = now() - interval '1 day'");
    expected = "missing ledger 3";
  }
  SUBCASE("a message that it has processed with another payload") {
    audit.ask("UPDATE processed_msgs SET payload_sha256 = sha256('x') WHERE \"offset\" = 2");
    expected = "conflicting ledger 3";
  }
  SUBCASE("one that it has processed, and whose record is not there") {
    audit.ask(
        "INSERT INTO processed_msgs (consumer, msg_id, id_time, payload_sha256, topic, partition, "
        "\"offset\") "
        "SELECT 'ledger', u.id, outbox_id_time(u.id), sha256('x'), $1, 0, 77 "
        "FROM (SELECT outbox_uuid_v7() AS id) u",
        pg::Params{}.text(audit.topic()));
    expected = "orphan ledger";
  }
  SUBCASE("one that it has processed, and whose record holds another message") {
    audit.ask(
        "INSERT INTO processed_msgs (consumer, msg_id, id_time, payload_sha256, topic, partition, "
        "\"offset\") "
        "SELECT 'ledger', u.id, outbox_id_time(u.id), sha256('x'), $1, 0, 1 "
        "FROM (SELECT outbox_uuid_v7() AS id) u",
        pg::Params{}.text(audit.topic()));
    expected = "orphan ledger";
  }
  const auto done = reconcile(audit);
  CHECK(done.found() == expected);
  CHECK(done.code == 1);
}

TEST_CASE("reconcile: what a consumer need not have, it does not miss") {
  Spoilt audit;
  audit.ask("DELETE FROM processed_msgs WHERE \"offset\" = 2");
  const auto registered_long_ago = [&] {
    audit.ask("UPDATE inbox_consumer SET registered_at = now() - interval '1 day'");
  };
  SUBCASE("it was sent before the consumer was registered") {
    CHECK(reconcile(audit).unknown("ledger", "before_consumer") == 1);
  }
  SUBCASE("the consumer has forgotten ids of that age") {
    registered_long_ago();
    audit.ask("UPDATE inbox_consumer SET low_water = now() + interval '1 day'");
    CHECK(reconcile(audit).unknown("ledger", "forgotten") == 1);
  }
  SUBCASE("it was sent just now") {
    registered_long_ago();
    CHECK(reconcile(audit).code == 1);
    audit.ask("UPDATE outbox_msg SET sent_at = now() WHERE id = 3");
    CHECK(reconcile(audit).counted("ledger", "not yet processed, sent just now") == 1);
  }
  SUBCASE("the consumer reads other topics only") {
    registered_long_ago();
    audit.ask("UPDATE processed_msgs SET topic = 'elsewhere'");
    CHECK(reconcile(audit, {"--topic", audit.topic()}).found() == "missing ledger 3");
    CHECK(reconcile(audit).unknown("ledger", "topic_not_read") == 3);
  }
  const auto done = reconcile(audit);
  CHECK(done.found() == "");
  CHECK(done.code == 0);
}

TEST_CASE(
    "reconcile sees what committed readers see: an aborted record is none, an open one is not known yet") {
  if (mock()) return;
  Spoilt audit;
  const auto row = audit.write("k", "5");
  const auto record = audit.record_of(row, "k", "5");
  SUBCASE("committed") {
    const auto offset = audit.publish(record, Ending::committed);
    audit.mark(row, 0, offset);
    audit.process(row, offset, "5");
    const auto done = reconcile(audit, {"--strict"});
    CHECK(done.found() == "");
    CHECK(done.counted("kafka", "verified") == 4);
  }
  SUBCASE("aborted") {
    const auto offset = audit.publish(record, Ending::aborted);
    audit.mark(row, 0, offset);
    const auto done = reconcile(audit, {"--grace", "7200"});
    CHECK(done.found() == "missing kafka 4");
    CHECK(done.code == 1);
  }
  SUBCASE("open") {
    const auto offset = audit.publish(record, Ending::open);
    audit.mark(row, 0, offset);
    const auto done = reconcile(audit, {"--grace", "7200"});
    CHECK(done.found() == "");
    CHECK(done.unknown("kafka", "record_hidden") == 1);
    CHECK(done.code == 0);
    CHECK(reconcile(audit, {"--grace", "7200", "--strict"}).code == 1);
  }
}

TEST_CASE("reconcile says what it cannot know: expired, compacted, deleted") {
  if (mock()) return;
  SUBCASE("records that retention has dropped, and a true gap behind them") {
    Spoilt audit;
    audit.expire(2);
    audit.mark(audit.rows[2], 0, 9);
    const auto done = reconcile(audit);
    CHECK(done.found() == "missing kafka 3, repeated kafka 3");
    CHECK(done.unknown("kafka", "record_expired") == 2);
    CHECK(done.unknown("ledger", "record_expired") == 2);
  }
  SUBCASE("a row that was dropped with its day") {
    Spoilt audit;
    auto old = audit.rows.back();
    old.id = 12'345;
    old.created_at = "2001-01-01T00:00:00.000000Z";
    audit.publish(audit.record_of(old, "k", "3"));
    const auto done = reconcile(audit);
    CHECK(done.found() == "");
    CHECK(done.unknown("kafka", "row_gone") == 1);
  }
  SUBCASE("a row that was removed once it was older than retention.replay_window") {
    Spoilt audit("poll_interval: 100ms", {{"retention.ms", "-1"}});
    auto old = audit.rows.back();
    old.id = 12'345;
    auto record = audit.record_of(old, "k", "3");
    record.age = std::chrono::hours{24 * 8};
    audit.publish(record);
    const auto done = reconcile(audit);
    CHECK(done.found() == "");
    CHECK(done.unknown("kafka", "row_gone") == 1);
  }
  SUBCASE("a row that was purged") {
    Spoilt audit;
    REQUIRE(audit.rig().outboxd({"purge", "--before", "now", "--reason", "disk"}).status.code == 0);
    REQUIRE(audit.ask("SELECT count(*) FROM outbox_msg") == "0");
    const auto done = reconcile(audit);
    CHECK(done.found() == "");
    CHECK(done.unknown("kafka", "row_gone") == 3);
  }
  SUBCASE("a compacted topic may have replaced a record") {
    Spoilt audit("poll_interval: 100ms", {{"cleanup.policy", "compact"}});
    const auto row = audit.write("k", "5");
    const auto offset = audit.publish(audit.record_of(row, "k", "5"), Ending::aborted);
    audit.mark(row, 0, offset);  // a hole, as compaction leaves it
    const auto done = reconcile(audit, {"--grace", "7200"});
    CHECK(done.found() == "");
    CHECK(done.unknown("kafka", "record_compacted") == 1);
  }
  SUBCASE("rows are deleted when they are sent: Kafka and consumer are still compared") {
    Spoilt audit("after_sent: delete");
    audit.ask("DELETE FROM outbox_msg");
    audit.ask("DELETE FROM processed_msgs WHERE \"offset\" = 2");
    audit.ask("UPDATE inbox_consumer SET registered_at = now() - interval '1 day'");
    const auto done = reconcile(audit, {"--grace", "0"});
    CHECK(done.found() == "missing ledger 3");
    CHECK(done.account["rows_are_deleted"] == true);
    CHECK(done.unknown("kafka", "row_gone") == 3);
    CHECK(audit.rig().outboxd({"reconcile"}).output.find("after_sent: delete keeps no row") !=
          std::string::npos);
    CHECK(reconcile(audit, {"--grace", "7200"}).code == 0);
    CHECK(reconcile(audit, {"--grace", "7200", "--strict"}).code == 1);
  }
  SUBCASE("a topic that was deleted") {
    Spoilt audit;
    KafkaCluster::shared().delete_topic(audit.topic());
    const auto done = reconcile(audit);
    CHECK(done.found() == "");
    CHECK(done.unknown("kafka", "topic_gone") == 3);
  }
}

TEST_CASE("reconcile narrows by time and topic, lists up to the limit, and counts all") {
  Spoilt audit;
  audit.ask("UPDATE outbox_msg SET kafka_offset = kafka_offset + 100");
  CHECK(reconcile(audit, {"--limit", "1"}).found() == "missing kafka 1, repeated kafka 1");
  CHECK(reconcile(audit, {"--limit", "1"}).account["missing"] == 3);
  CHECK(reconcile(audit, {"--until", "2001-01-01"}).account["missing"] == 0);
  CHECK(reconcile(audit, {"--since", "2001-01-01"}).account["missing"] == 3);
  CHECK(audit.rig().outboxd({"reconcile", "--since", "1 day ago"}).status.code != 0);
  CHECK(reconcile(audit, {"--topic", "other.topic"}).account["missing"] == 0);
}

TEST_CASE("reconcile refuses what it cannot look at, and says what to do") {
  Audit audit;
  const auto nobody = audit.rig().outboxd({"reconcile", "--consumer", "nobody"});
  CHECK(nobody.status.code == 4);
  CHECK(nobody.errors.find("no consumer named nobody is known in this database") != std::string::npos);
  const auto away = audit.rig().outboxd({"reconcile", "--uri", "postgresql://u@127.0.0.1:9/d"});
  CHECK(away.status.code == 3);
  const auto schema =
      audit.rig().outboxd({"reconcile", "--consumer", "ledger", "--consumer-schema", "nowhere"});
  CHECK(schema.status.code == 4);
  CHECK(schema.errors.find("--consumer-schema") != std::string::npos);
}

TEST_CASE("reconcile needs no more than an operator's rights") {
  Spoilt audit;
  must(relay::apply_grants(audit.rig().sql(), {}));
  audit.ask(
      "DO $$ BEGIN CREATE ROLE reconcile_auditor LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$");
  audit.ask("GRANT outbox_operator TO reconcile_auditor");
  const std::string uri =
      with_database(audit.rig().uri(), audit.ask("SELECT current_database()"), "reconcile_auditor");
  CHECK(reconcile(audit, {"--uri", uri, "--strict"}).code == 0);
}

TEST_CASE("reconcile keeps nothing in memory: ten times the rows and findings cost the same") {
  Audit audit;
  const auto grow = [&](int rows) {
    audit.ask(
        "INSERT INTO outbox_msg (topic, msg_key, body, status, sent_at, kafka_partition, kafka_offset) "
        "SELECT $1, i::text, 'null', 'SENT', now(), 0, i FROM generate_series(1, $2::int) i",
        pg::Params{}.text(audit.topic()).i32(rows));
  };
  const auto peak_kb = [&] {
    Process program(OUTBOXD_PROGRAM, {.args = {"reconcile", "--limit", "0", "--consumer", "ledger", "-c",
                                               audit.rig().file()}});
    const std::string status = "/proc/" + std::to_string(program.pid()) + "/status";
    long peak = 0;
    while (program.running()) {
      const std::string text = read_file(status);
      const auto at = text.find("VmHWM:");
      if (at != std::string::npos) peak = std::max(peak, std::stol(text.substr(at + 6)));
    }
    CHECK(program.wait().code == 1);
    return peak;
  };
  grow(10'000);
  const auto small = peak_kb();
  grow(90'000);
  const auto large = peak_kb();
  CAPTURE(small);
  CAPTURE(large);
  CHECK(large < small + 4'000);
}
