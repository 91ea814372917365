// Old days go, and nothing in them that is still needed.

#include <doctest/doctest.h>

#include <atomic>
#include <future>

#include "sql_fixture.hpp"
#include "tests/support/eventually.hpp"

namespace outbox {
namespace {

using test::ask;
using test::must;
using test::OutboxDatabase;
using test::refusal;

// An outbox with a settled day that ended 29 days ago.
struct OldDay : OutboxDatabase {
  OldDay() {
    ask(sql(),
        "SELECT outbox_make_partition('outbox_msg', 'outbox_msg_default', (now() AT TIME ZONE 'UTC')::date - "
        "30, 'fillfactor = 50')");
    part = ask(sql(),
               "SELECT 'outbox_msg_p' || to_char(now() AT TIME ZONE 'UTC' - interval '30 days', 'YYYYMMDD')");
    for (const char* status : {"SENT", "CANCELLED", "DISCARDED"}) row(status, "29 days");
  }
  void row(const std::string& status, const std::string& sent_ago) {
    ask(sql(),
        "INSERT INTO outbox_msg (topic, msg_key, status, created_at, sent_at) VALUES ('t', 'k', $1, "
        "now() - interval '30 days', now() - $2::interval)",
        pg::Params{}.text(status).untyped(sent_ago));
  }
  std::string drop(const std::string& window = "7 days") { return drop(sql(), window); }
  std::string drop(pg::Session& session, const std::string& window) const {
    return ask(session, "SELECT outbox_drop_partition('" + part + "', '" + window + "')");
  }
  std::string rows() { return ask(sql(), "SELECT count(*) FROM outbox_msg"); }

  std::string part;
};

bool waits_for_lock(OutboxDatabase& outbox, const std::string& name) {
  return test::happens_within(Millis{10'000}, [&] {
    return ask(outbox.sql(),
               "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = "
               "'Lock'",
               pg::Params{}.text(name)) == "1";
  });
}

}  // namespace

TEST_CASE("a day whose rows are settled and older than the replay window is dropped") {
  OldDay outbox;
  CHECK(outbox.drop() == "dropped");
  CHECK(outbox.rows() == "0");
  CHECK(ask(outbox.sql(), "SELECT to_regclass('" + outbox.part + "')") == "null");
}

TEST_CASE("one row that is pending, scheduled, held or dead keeps its day") {
  OldDay outbox;
  for (const std::string status : {"PENDING", "HELD", "DEAD"}) {
    outbox.row(status, "29 days");
    CHECK(outbox.drop() == "unsent");
    ask(outbox.sql(), "UPDATE outbox_msg SET status = 'SENT'");
  }
  ask(outbox.sql(), "UPDATE outbox_msg SET status = 'PENDING', available_at = now() + '1 year' WHERE id = 1");
  CHECK(outbox.drop() == "unsent");
  ask(outbox.sql(), "UPDATE outbox_msg SET status = 'SENT'");
  CHECK(outbox.drop() == "dropped");
}

TEST_CASE("the replay window counts from when a row was sent, not from when it was written") {
  OldDay outbox;
  outbox.row("SENT", "6 days");
  CHECK(outbox.drop("7 days") == "recent");
  CHECK(outbox.drop("30 days") == "recent");  // the day itself ended 29 days ago
  CHECK(outbox.drop("5 days") == "dropped");
}

TEST_CASE("only a day of the outbox is dropped, and only under READ COMMITTED") {
  OldDay outbox;
  auto& sql = outbox.sql();
  CHECK(refusal(sql, "SELECT outbox_drop_partition('outbox_msg_default', '0')") == "22023");
  CHECK(refusal(sql, "SELECT outbox_drop_partition('outbox_hold', '0')") == "22023");
  CHECK(refusal(sql, "SELECT outbox_drop_partition('processed_msgs_default', '0')") == "22023");
  CHECK(refusal(sql, "SELECT outbox_drop_partition('" + outbox.part + "', '-1 day')") == "22023");
  CHECK(refusal(sql, "SELECT outbox_drop_partition('" + outbox.part + "', NULL)") == "22023");
  must(sql.exec_script("BEGIN ISOLATION LEVEL REPEATABLE READ"));
  CHECK(refusal(sql, "SELECT outbox_drop_partition('" + outbox.part + "', '7 days')") == "25000");
  must(sql.exec_script("ROLLBACK"));
  CHECK(outbox.rows() == "3");
}

TEST_CASE("a row that is committed while the drop waits for its lock survives") {
  for (const std::string late : {"PENDING", "SENT"}) {
    CAPTURE(late);
    OldDay outbox;
    ask(outbox.sql(), "ALTER FUNCTION outbox_drop_partition SET lock_timeout = '30s'");  // time to slip in
    auto business = outbox.session();
    must(business.exec_script("BEGIN"));
    ask(business,
        "INSERT INTO outbox_msg (topic, status, created_at, sent_at) VALUES ('late', $1, now() - interval "
        "'30 days', now())",
        pg::Params{}.text(late));
    std::string verdict;
    std::future<void> dropper = std::async(std::launch::async, [&] {
      auto session = outbox.session();
      ask(session, "SET application_name = 'dropper'");
      verdict = outbox.drop(session, "7 days");
    });
    CHECK(waits_for_lock(outbox, "dropper"));
    must(business.exec_script("COMMIT"));
    dropper.get();
    CHECK(verdict == (late == "PENDING" ? "unsent" : "recent"));
    CHECK(ask(outbox.sql(), "SELECT count(*) FROM outbox_msg WHERE topic = 'late'") == "1");
  }
}

TEST_CASE("a drop that does not get its lock at once gives up, and the inserts behind it go on") {
  OldDay outbox;
  auto business = outbox.session();
  must(business.exec_script("BEGIN; INSERT INTO outbox_msg (topic) VALUES ('open')"));
  std::atomic<bool> given_up = false;
  std::future<void> others = std::async(std::launch::async, [&] {
    auto other = outbox.session();
    must(other.exec_script("SET lock_timeout = '1s'"));
    do {
      CHECK(refusal(other, "INSERT INTO outbox_msg (topic) VALUES ('other')") == "accepted");
    } while (!given_up);
  });
  CHECK(refusal(outbox.sql(), "SELECT outbox_drop_partition('" + outbox.part + "', '7 days')") == "55P03");
  given_up = true;
  others.get();
  must(business.exec_script("COMMIT"));
  CHECK(outbox.drop() == "dropped");
}

TEST_CASE("a drop in vain asks for no lock that keeps anybody waiting") {
  OldDay outbox;
  outbox.row("DEAD", "29 days");
  auto business = outbox.session();
  must(business.exec_script("BEGIN; INSERT INTO outbox_msg (topic) VALUES ('open')"));
  CHECK(outbox.drop() == "unsent");
  must(business.exec_script("COMMIT"));
}

TEST_CASE("what the drop looks at under its lock does not grow with the day") {
  OldDay outbox;
  auto& sql = outbox.sql();
  ask(sql,
      "INSERT INTO outbox_msg (topic, status, created_at, sent_at) SELECT 't', 'SENT', now() - interval '30 "
      "days', now() - interval '29 days' FROM generate_series(1, 50000)");
  ask(sql, "VACUUM " + outbox.part);  // also fills the index of sent_at, as autovacuum does
  auto looker = outbox.session();     // whose statistics begin now
  must(looker.exec_script("BEGIN"));
  CHECK(ask(looker, "SELECT outbox_partition_kept_by('" + outbox.part + "', now() - interval '7 days')") ==
        "nothing");
  CHECK(ask(looker,
            "SELECT seq_tup_read, idx_tup_fetch < 1000 FROM pg_stat_xact_user_tables WHERE relname = $1",
            pg::Params{}.text(outbox.part)) == "0|t");
  must(looker.exec_script("COMMIT"));
}

TEST_CASE("the relay may drop days through the function, and the application may not") {
  OldDay outbox;
  outbox.with_roles();
  auto app = outbox.as("outbox_app");
  auto relay = outbox.as("outbox_relay");
  CHECK(refusal(app, "SELECT outbox_drop_partition('" + outbox.part + "', '7 days')") == "42501");
  CHECK(refusal(relay, "DROP TABLE " + outbox.part) == "42501");
  CHECK(outbox.drop(relay, "7 days") == "dropped");
}

}  // namespace outbox
