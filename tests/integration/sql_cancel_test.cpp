// outbox_cancel: an answer that can be relied on.

#include <doctest/doctest.h>

#include "sql_fixture.hpp"

namespace outbox {
namespace {

using test::ask;
using test::must;
using test::OutboxDatabase;

std::string scheduled(OutboxDatabase& outbox, const std::string& from_now) {
  return ask(outbox.sql(),
             "SELECT outbox_publish('t', 'k', '1', available_at => now() + '" + from_now + "'::interval)");
}
std::string cancel(pg::Session& session, const std::string& id) {
  return ask(session, "SELECT outbox_cancel($1)", pg::Params{}.untyped(id));
}

}  // namespace

TEST_CASE("a message that lies well ahead is cancelled, and stays so when asked again") {
  OutboxDatabase outbox;
  outbox.with_roles();
  auto app = outbox.as("outbox_app");
  const std::string id = scheduled(outbox, "1 hour");
  CHECK(cancel(app, id) == "cancelled");
  CHECK(cancel(app, id) == "cancelled");
  CHECK(ask(outbox.sql(), "SELECT status FROM outbox_msg") == "CANCELLED");
}

TEST_CASE("what may be on its way is never called cancelled") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  const std::string at_once = ask(sql, "SELECT outbox_publish('t', 'k', '1')");
  const std::string due = scheduled(outbox, "-1 second");
  const std::string nearly_due = scheduled(outbox, "3 seconds");
  for (const auto& id : {at_once, due, nearly_due}) CHECK(cancel(sql, id) == "may be sent");
  CHECK(cancel(sql, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f") == "may be sent");
  CHECK(ask(sql, "SELECT count(*) FROM outbox_msg WHERE status = 'PENDING'") == "3");
  for (const std::string status : {"SENT", "HELD", "DEAD", "DISCARDED"}) {
    CAPTURE(status);
    const std::string id = scheduled(outbox, "1 hour");
    ask(sql, "UPDATE outbox_msg SET status = $1 WHERE msg_id = $2", pg::Params{}.text(status).untyped(id));
    CHECK(cancel(sql, id) == "may be sent");
  }
}

TEST_CASE("of two rows with one id, one that is due keeps the answer honest") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  const std::string id = scheduled(outbox, "1 hour");
  ask(sql, "INSERT INTO outbox_msg (msg_id, topic, available_at) VALUES ($1, 't', now())",
      pg::Params{}.untyped(id));
  CHECK(cancel(sql, id) == "may be sent");
}

TEST_CASE("a cancel that answers that a message may be sent has changed nothing and keeps no lock") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  const std::string nearly_due = scheduled(outbox, "3 seconds");
  const std::string of_two = scheduled(outbox, "1 hour");
  ask(sql, "INSERT INTO outbox_msg (msg_id, topic, available_at) VALUES ($1, 't', now())",
      pg::Params{}.untyped(of_two));
  auto app = outbox.session();
  must(app.exec_script("BEGIN"));
  CHECK(cancel(app, nearly_due) == "may be sent");
  CHECK(cancel(app, of_two) == "may be sent");
  CHECK(ask(sql,
            "SELECT count(*) FROM (SELECT FROM outbox_msg WHERE status = 'PENDING' FOR UPDATE SKIP LOCKED) "
            "x") == "3");
  must(app.exec_script("COMMIT"));
  CHECK(ask(sql, "SELECT count(*) FROM outbox_msg WHERE status = 'PENDING'") == "3");
}

TEST_CASE("while a cancel is open its row is skipped by claims, and a rolled back cancel leaves it pending") {
  OutboxDatabase outbox;
  const std::string id = scheduled(outbox, "1 hour");
  auto app = outbox.session();
  must(app.exec_script("BEGIN"));
  CHECK(cancel(app, id) == "cancelled");
  const auto claimable =
      "SELECT count(*) FROM (SELECT FROM outbox_msg WHERE status = 'PENDING' FOR KEY SHARE SKIP LOCKED) x";
  CHECK(ask(outbox.sql(), claimable) == "0");
  must(app.exec_script("ROLLBACK"));
  CHECK(ask(outbox.sql(), claimable) == "1");
}

TEST_CASE("a cancel finds its row by an index, whatever the statistics say") {
  OutboxDatabase outbox;
  auto& sql = outbox.sql();
  ask(sql,
      "INSERT INTO outbox_msg (topic, available_at) SELECT 't', now() + '1 day' FROM generate_series(1, "
      "1000)");
  const std::string id = scheduled(outbox, "1 hour");
  const auto scans =
      "SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_xact_user_tables WHERE relname LIKE 'outbox_msg%'";
  must(sql.exec_script("BEGIN"));
  CHECK(cancel(sql, id) == "cancelled");
  CHECK(ask(sql, scans) == "0");
  must(sql.exec_script("COMMIT"));
}

}  // namespace outbox
