#include "examples/demo/proof.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "examples/demo/bank.hpp"
#include "tests/support/postgres.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

// Both sides of the demo as they stand after three transfers that went well, and one that was rolled back.
// One database stands for the two, since the proof only reads.
constexpr std::string_view after_three_transfers = R"sql(
  CREATE SCHEMA bank;
  CREATE TABLE bank.account (id int, balance bigint, moves bigint);
  CREATE TABLE bank.transfer (id bigint, payer int, payee int, amount bigint);
  CREATE TABLE bank.rolled_back (transfer bigint, why text);
  CREATE TABLE outbox_msg (id bigint, status text);
  CREATE SCHEMA ledger;
  CREATE TABLE ledger.account (id int, balance bigint, last_move bigint, out_of_order bigint);
  CREATE TABLE ledger.entry (transfer bigint, account int, amount bigint);
  CREATE TABLE dead_msgs (id bigint);

  INSERT INTO bank.transfer VALUES (1, 1, 2, 10), (2, 2, 3, 20), (3, 1, 3, 5);
  INSERT INTO bank.rolled_back VALUES (4, 'changed their mind');
  INSERT INTO ledger.entry SELECT id, payer, -amount FROM bank.transfer UNION ALL SELECT id, payee, amount FROM bank.transfer;
  INSERT INTO bank.account
    SELECT a, {opening} + (SELECT sum(amount) FROM ledger.entry WHERE account = a),
           (SELECT count(*) FROM ledger.entry WHERE account = a) FROM generate_series(1, 3) a;
  INSERT INTO ledger.account SELECT id, balance, moves, 0 FROM bank.account;
  INSERT INTO outbox_msg SELECT n, 'SENT' FROM generate_series(1, 6) n;
)sql";

KafkaRecord record(int seq, const std::string& account) {
  KafkaRecord r;
  r.key = account;
  r.headers = {{"outbox-id", "id-" + std::to_string(seq)}, {"outbox-seq", std::to_string(seq)}};
  return r;
}

class Scene {
 public:
  Scene() {
    std::string sql{after_three_transfers};
    const std::string place = "{opening}";
    sql.replace(sql.find(place), place.size(), std::to_string(demo::opening_balance));
    must(session_.exec_script(sql));
    int seq = 0;
    for (const char* account : {"1", "2", "2", "3", "1", "3"}) records.push_back(record(++seq, account));
  }
  void tamper(const std::string& sql) { must(session_.exec_script(sql)); }
  /// The places, from 0, of the laws that do not hold.
  std::vector<std::size_t> broken() {
    const auto laws = demo::prove({session_, session_, records});
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < laws.size(); ++i)
      if (!laws[i].holds) out.push_back(i);
    return out;
  }

  std::vector<KafkaRecord> records;

 private:
  TestDatabase database_;
  pg::Session session_ = database_.session();
};

enum Law : std::size_t { sums, once, rolled_back, applied_order, kafka, left };
using Laws = std::vector<std::size_t>;

}  // namespace

TEST_CASE("the proof holds where all went well, with copies in Kafka too") {
  Scene scene;
  CHECK(scene.broken().empty());
  scene.records.push_back(scene.records.front());
  CHECK(scene.broken().empty());
}

TEST_CASE("the proof fails when a movement is missing, doubled or strange") {
  Scene missing;
  missing.tamper("DELETE FROM ledger.entry WHERE transfer = 2 AND account = 3");
  CHECK(missing.broken() == Laws{once});
  Scene doubled;
  doubled.tamper("INSERT INTO ledger.entry SELECT * FROM ledger.entry WHERE transfer = 2 AND account = 3");
  CHECK(doubled.broken() == Laws{once});
  Scene strange;
  strange.tamper("INSERT INTO ledger.entry VALUES (9, 1, 1)");
  CHECK(strange.broken() == Laws{once});
}

TEST_CASE("the proof fails when money appears, vanishes or lies on another account") {
  Scene appeared;
  appeared.tamper("UPDATE ledger.account SET balance = balance + 1 WHERE id = 1");
  CHECK(appeared.broken() == Laws{sums});
  Scene moved;
  moved.tamper(
      "UPDATE ledger.account SET balance = balance + CASE id WHEN 1 THEN 1 ELSE -1 END WHERE id < 3");
  CHECK(moved.broken() == Laws{sums});
}

TEST_CASE("the proof fails when a rolled-back transfer was applied") {
  Scene scene;
  scene.tamper("INSERT INTO ledger.entry VALUES (4, 1, -7)");
  CHECK(scene.broken() == Laws{once, rolled_back});
}

TEST_CASE("the proof fails when nothing was rolled back: then it would say nothing about it") {
  Scene scene;
  scene.tamper("DELETE FROM bank.rolled_back");
  CHECK(scene.broken() == Laws{rolled_back});
}

TEST_CASE("the proof fails when an account's movements were applied out of order or not to the end") {
  Scene astray;
  astray.tamper("UPDATE ledger.account SET out_of_order = 1 WHERE id = 2");
  CHECK(astray.broken() == Laws{applied_order});
  Scene behind;
  behind.tamper("UPDATE ledger.account SET last_move = last_move - 1 WHERE id = 2");
  CHECK(behind.broken() == Laws{applied_order});
}

TEST_CASE("the proof fails when Kafka lacks a message or has a key's first copies out of order") {
  Scene lacking;
  lacking.records.pop_back();
  CHECK(lacking.broken() == Laws{kafka});
  Scene astray;
  std::swap(astray.records[1], astray.records[2]);
  CHECK(astray.broken() == Laws{kafka});
}

TEST_CASE("the proof fails when a row waits or a message is dead") {
  Scene waiting;
  waiting.tamper("UPDATE outbox_msg SET status = 'PENDING' WHERE id = 1");
  CHECK(waiting.broken() == Laws{left});
  Scene dead;
  dead.tamper("INSERT INTO dead_msgs VALUES (1)");
  CHECK(dead.broken() == Laws{left});
}
