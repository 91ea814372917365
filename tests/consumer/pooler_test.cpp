// The inbox and the whole consumer behind a real pgbouncer in transaction mode: fewer server processes than
// clients, so that each transaction may meet another one, with whatever another client left there.

#include <doctest/doctest.h>

#include <future>

#include "kafka_letters.hpp"
#include "outbox/consumer.hpp"
#include "service_database.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/pgbouncer.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

struct PooledService : ServiceDatabase {
  explicit PooledService(int server_connections = 2) : pooler(database.uri(), server_connections) {
    must(session.exec("CREATE TABLE account (id text PRIMARY KEY, cents bigint)"));
    must(session.exec("INSERT INTO account VALUES ('alice', 1000), ('bob', 1000)"));
  }
  [[nodiscard]] InboxOptions pooled(const std::string& name = "ledger") const {
    return {.name = name, .postgres = pooler.uri()};
  }
  std::int64_t cents(const std::string& id) {
    return number("SELECT cents FROM account WHERE id = '" + id + "'");
  }

  PgBouncer pooler;
};

Letter transfer(int n, const std::string& account, const std::string& kind) {
  auto one = letter(v7(n), "10", n);
  one.key = account;
  one.headers.emplace_back("kind", kind);
  return one;
}

/// The same shape of parameters in both statements: one that runs in the other's place is not refused.
void book(Transaction& tx, const Message& message) {
  const bool credit = message.header("kind") == "credit";
  static_cast<void>(tx.exec(credit ? "UPDATE account SET cents = cents + $1::bigint WHERE id = $2"
                                   : "UPDATE account SET cents = cents - $1::bigint WHERE id = $2",
                            *message.body(), *message.key()));
}

}  // namespace

TEST_CASE(
    "behind a pooler in transaction mode each message runs its own SQL, whoever used the server before") {
  PooledService db;
  Inbox first(db.pooled()), second(db.pooled());
  std::promise<void> under_way, go_on;
  auto credited = std::async(std::launch::async, [&] {
    return first.process(transfer(1, "alice", "credit").record(), [&](Transaction& tx, const Message& m) {
      book(tx, m);
      under_way.set_value();
      go_on.get_future().wait();
    });
  });
  under_way.get_future().wait();  // so that the other one meets the other server process
  CHECK(second.process(transfer(2, "bob", "debit").record(), book).fate == Fate::applied);
  go_on.set_value();
  CHECK(credited.get().fate == Fate::applied);
  for (int n = 3; n < 9; ++n) {
    Inbox& inbox = n % 2 == 0 ? first : second;
    CHECK(inbox.process(transfer(n, "alice", "credit").record(), book).fate == Fate::applied);
  }
  CHECK(db.cents("alice") == 1070);
  CHECK(db.cents("bob") == 990);
  Inbox restarted(db.pooled());  // on what its predecessors left on the server's processes
  CHECK(restarted.process(transfer(9, "alice", "credit").record(), book).fate == Fate::applied);
  CHECK(db.cents("alice") == 1080);
  CHECK(db.number("SELECT count(*) FROM pg_prepared_statements") == 0);
}

TEST_CASE("behind a pooler everything that an inbox does works, and leaves nothing on the server's process") {
  PooledService db(1);
  Inbox inbox(db.pooled()), other(db.pooled("other"));
  inbox.check();
  CHECK(inbox.maintain().waiting == 0);
  CHECK(inbox.claim_partition("transfers", 0).epoch == 1);
  CHECK(other.claim_partition("transfers", 0).epoch == 1);
  const Handler handler = [](Transaction& tx, const Message& message) {
    tx.send({.rows = 1}, "UPDATE account SET cents = cents + 1 WHERE id = $1", *message.key());
    record_effect(tx, message);
    static_cast<void>(tx.publish("booked", message.key(), "{}"));
    CHECK(tx.advance(*message.key(), message.offset()));
  };
  std::vector<Letter> batch;
  for (int n = 1; n <= 40; ++n) batch.push_back(transfer(n, "alice", "credit"));
  const auto all = [&](Inbox& one, Fate fate) {
    return fates(one.process(records(batch), handler)) == std::vector(batch.size(), fate);
  };
  CHECK(all(inbox, Fate::applied));
  CHECK(all(other, Fate::applied));
  CHECK(all(inbox, Fate::skipped));
  CHECK(db.cents("alice") == 1080);
  CHECK(db.effects() == 80);
  CHECK(inbox
            .process(transfer(99, "bob", "credit").record(),
                     [](Transaction&, const Message&) { throw Reject("not now"); })
            .fate == Fate::dead);
  CHECK(db.number("SELECT inbox_dead_retry(id)::int FROM dead_msgs") == 1);
  CHECK(fates(inbox.retry_dead(handler)) == std::vector{Fate::applied});
  auto pooled = must(pg::Session::connect({.uri = db.pooler.uri()}));
  CHECK(pooled.pooled());
  CHECK_FALSE(db.session.pooled());
  const auto left =
      must(pooled.exec("SELECT (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_locks"
                       " WHERE locktype = 'advisory' AND pid = pg_backend_pid()),"
                       " current_setting('idle_in_transaction_session_timeout')"));
  CHECK(left.integer(0, 0) == 0);
  CHECK(left.integer(0, 1) == 0);
  CHECK(left.text(0, 2) == "0");
}

TEST_CASE("a consumer with four workers behind a pooler with two connections: every transfer counts once") {
  PooledService db;
  auto& kafka = KafkaCluster::shared();
  const std::string topic = kafka.new_topic("pooled", 4);
  std::vector<Letter> sent;
  for (int n = 1; n <= 400; ++n) {
    sent.push_back(transfer(n, n % 3 == 0 ? "bob" : "alice", n % 2 == 0 ? "debit" : "credit"));
    sent.back().partition = n % 4;
  }
  send(kafka.bootstrap(), topic, sent);
  RunningConsumer consumer({.name = topic,
                            .postgres = db.pooler.uri(),
                            .kafka = {{"bootstrap.servers", kafka.bootstrap()}},
                            .topics = {topic},
                            .workers = 4,
                            .horizon_check = horizon_check(kafka),
                            .log = [](std::string_view) {}},
                           [](Transaction& tx, const Message& message) {
                             book(tx, message);
                             record_effect(tx, message);
                           });
  eventually(
      "every transfer has its effect", [&] { return db.effects() >= 400; }, Millis{40'000});
  consumer.stop();
  CHECK(consumer.error().empty());
  CHECK(db.effects() == 400);
  // 1 to 400: of alice 133 credits and 134 debits, of bob 67 and 66.
  CHECK(db.cents("alice") == 1000 + 10 * (133 - 134));
  CHECK(db.cents("bob") == 1000 + 10 * (67 - 66));
}
