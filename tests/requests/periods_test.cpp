// Periods: a client is stalled between every two statements of request_begin, while others begin the same key, and periods
// are closed and dropped. And variants of the functions that are wrong, which must be caught.

#include <doctest/doctest.h>

#include <future>
#include <vector>

#include "requests_database.hpp"
#include "tests/support/eventually.hpp"

namespace outbox {
namespace {

using test::eventually;
using test::must;
using test::pay_once;
using test::RequestsDatabase;

const std::vector<std::string> stalls{"listed", "looked", "inserted", "begun"};

struct World : RequestsDatabase {
  World() {
    must(session.exec_script(R"(
      CREATE TABLE stall (released boolean);
      INSERT INTO stall VALUES (false);
      CREATE FUNCTION test_stall(at text) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
      BEGIN
        IF current_setting('test.stall', true) = at THEN
          WHILE NOT (SELECT released FROM public.stall) LOOP PERFORM pg_sleep(0.002); END LOOP;
        END IF;
      END $$;)"));
    change("request_begin", "'1s'", "'30ms'");
    change("request_begin", "SELECT k.* INTO known",
           "PERFORM public.test_stall('listed'); SELECT k.* INTO known");
    change("request_begin", "IF NOT FOUND THEN\n      IF op.keys",
           "IF NOT FOUND THEN PERFORM public.test_stall('looked'); IF op.keys");
    change("request_begin", "IF verdict IS NOT NULL THEN\n        RETURN;\n      END IF;\n      CONTINUE;",
           "PERFORM public.test_stall('inserted'); IF verdict IS NOT NULL THEN RETURN; END IF; CONTINUE;");
  }

  void release(bool now) {
    must(session.exec_script(std::string("UPDATE stall SET released = ") + (now ? "true" : "false")));
  }

  /// As if an eighth of the retention had passed.
  void age(const std::string& name) {
    must(
        session.exec_script("UPDATE idempotency_period SET opened_at = opened_at - interval '1 day', "
                            "closed_at = closed_at - interval '1 day' WHERE class = '" +
                            name + "'"));
  }
  /// So that the upkeep has no other classes to look at.
  void forget(const std::string& name) {
    const auto rows =
        must(session.exec("SELECT period::text FROM idempotency_period WHERE class = '" + name + "'"));
    for (int i = 0; i < rows.size(); ++i)
      must(session.exec_script("DROP TABLE idempotency_keys_" + std::string(rows.text(i, 0))));
    must(session.exec_script("DELETE FROM idempotency_period WHERE class = '" + name +
                             "'; DELETE FROM idempotency_operation WHERE class = '" + name +
                             "'; DELETE FROM idempotency_class WHERE class = '" + name + "'"));
  }
  /// Upkeep as far as it comes. Answers its last word.
  std::string maintain() {
    for (;;) {
      std::string step = text("SELECT step FROM request_maintain()");
      if (step != "made" && step != "closed" && step != "dropped") return step;
    }
  }
};

// A stalled client in a thread: begin, effect, succeed, COMMIT.
class Stalled {
 public:
  Stalled(World& world, const std::string& scope, const std::string& key, const std::string& at)
      : world_(world), session_(world.database.session()) {
    must(session_.exec_script("SET test.stall = " + test::in_quotes(at)));
    world.release(false);
    done_ = std::async(std::launch::async, [this, scope, key, at] {
      if (at != "begun") return pay_once(session_, scope, key);
      std::string verdict = "error";
      const Status committed = session_.transaction([&](pg::Session& s) -> Status {
        const auto begun = test::begin_request(s, scope, key, "", "same", ", 1, '{}', 'transaction'");
        if (!begun) return failure(begun.error());
        verdict = begun->verdict;
        if (const auto waited = s.exec("SELECT test_stall('begun')"); !waited) return failure(waited.error());
        if (verdict != "execute") return {};
        if (const auto e = s.exec("INSERT INTO effect VALUES (" + test::in_quotes(key) + ", 1)"); !e)
          return failure(e.error());
        return test::finish_request(s, "request_succeed", scope, key, *begun);
      });
      return committed ? verdict : std::string("error");
    });
    const std::string pid = std::to_string(session_.backend_pid());
    eventually("the client is stalled", [&] {
      return world.number("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND pid = " +
                          pid) == 1;
    });
  }
  std::string finish() {
    world_.release(true);
    return done_.get();
  }

 private:
  World& world_;
  pg::Session session_;
  std::future<std::string> done_;
};

// Another client with the same key (b), and an eighth of the retention that passes (m), in the orders that differ.
const std::vector<std::string> histories{"", "b", "m", "bb", "bm", "mb", "mm", "bmb", "mbm", "mmb"};

// How many histories ended with other than one effect and one row of the key.
int violations(World& world, int enough = 1'000) {
  int out = 0;
  int number = 0;
  auto other = world.database.session();
  for (const auto& at : stalls) {
    for (const auto& history : histories) {
      const std::string name = "c" + std::to_string(number++);
      world.declare(name);
      const std::string scope = name + ":tenant";
      Stalled client(world, scope, name, at);
      for (const char step : history) {
        if (step == 'b') static_cast<void>(pay_once(other, scope, name));
        if (step == 'm') {
          world.age(name);
          static_cast<void>(world.maintain());
        }
      }
      const std::string verdict = client.finish();
      static_cast<void>(world.maintain());
      static_cast<void>(pay_once(other, scope, name));
      const bool told = verdict == "execute" || verdict == "replay" || verdict == "in_progress";
      const bool lawful =
          told && world.number("SELECT count(*) FROM effect WHERE key = '" + name + "'") == 1 &&
          world.number("SELECT count(*) FROM idempotency_keys WHERE key = '" + name + "'") == 1;
      if (!lawful) MESSAGE("stalled ", at, ", then ", history, ": ", verdict);
      if (!lawful && ++out == enough) return out;
      world.forget(name);
    }
  }
  return out;
}

}  // namespace

TEST_CASE(
    "a client stalled between any two statements of begin, while periods close: one effect, one "
    "row") {
  World world;
  CHECK(violations(world) == 0);
}

TEST_CASE("the stalled client catches periods that close without waiting for inserts under way") {
  World world;
  world.change("request_maintain", "EXECUTE format('CREATE TRIGGER", "PERFORM format('CREATE TRIGGER");
  CHECK(violations(world, 1) == 1);
}

TEST_CASE("the stalled client catches a begin that reads the open period alone") {
  World world;
  world.change("request_begin", "k.period = ANY (op.live)", "k.period = op.open");
  CHECK(violations(world, 1) == 1);
}

TEST_CASE("the stalled client catches a begin that inserts into the newest period") {
  World world;
  world.change("request_begin", "min(p.period) FILTER", "max(p.period) FILTER");
  CHECK(violations(world, 1) == 1);
}

TEST_CASE("a period is dropped under a stalled client, who forgets nothing that must be remembered") {
  World world;
  auto other = world.database.session();
  int number = 0;
  for (const auto& at : stalls) {
    const std::string name = "d" + std::to_string(number++);
    world.declare(name);
    CHECK(pay_once(other, name + ":t", "first") == "execute");
    for (int period = 0; period < 9; ++period) {
      world.age(name);
      CHECK(world.maintain() == "done");
    }
    CHECK(pay_once(other, name + ":t", "late") == "execute");
    CHECK(pay_once(other, name + ":t", "first") == "replay");
    world.age(name);
    Stalled client(world, name + ":t", "new", at);
    CHECK(world.maintain() == (at == "listed" ? "done" : "waiting"));  // as long as it uses the table
    CHECK(client.finish() == "execute");
    CHECK(world.maintain() == "done");
    CHECK(world.number("SELECT count(*) FROM idempotency_period WHERE class = '" + name + "'") <= 12);
    CHECK(pay_once(other, name + ":t", "first") ==
          "execute");  // forgotten: the business's own constraint holds it
    CHECK(pay_once(other, name + ":t", "late") == "replay");
    CHECK(pay_once(other, name + ":t", "new") == "replay");
  }
}

TEST_CASE("what is unfinished keeps its period, at most twelve live, and the open one goes on") {
  World world;
  auto other = world.database.session();
  const auto begun = must(test::begin_request(other, "pay:t", "k"));
  must(test::retry_request(other, "pay:t", "k", begun));
  for (int i = 0; i < 20; ++i) {
    world.age("pay");
    static_cast<void>(world.maintain());
  }
  CHECK(world.maintain() == "held");
  CHECK(world.number("SELECT count(*) FROM idempotency_period") == 12);
  CHECK(pay_once(other, "pay:t", "new") == "execute");
  CHECK(world.number(
            "SELECT request_purge(clock_timestamp() + interval '1 minute', 'nobody asks any more')") == 1);
  static_cast<void>(world.maintain());
  CHECK(world.number("SELECT count(*) FROM idempotency_keys WHERE key = 'k'") == 0);
  CHECK(pay_once(other, "pay:t", "new") == "replay");
}

TEST_CASE("the server's clock jumps by a year: no key that must be remembered is forgotten") {
  World world;
  auto other = world.database.session();
  CHECK(pay_once(other, "pay:t", "first") == "execute");
  for (int period = 0; period < 8; ++period) {
    world.age("pay");
    CHECK(world.maintain() == "done");
  }
  CHECK(pay_once(other, "pay:t", "last") == "execute");
  must(
      world.session.exec_script("UPDATE idempotency_period SET opened_at = opened_at - interval '1 year', "
                                "closed_at = closed_at - interval '1 year'"));
  CHECK(world.maintain() == "done");
  CHECK(pay_once(other, "pay:t", "first") == "replay");
  CHECK(pay_once(other, "pay:t", "last") == "replay");
}

TEST_CASE("closing a period under load makes no begin wait 100 ms for it") {
  World world;
  world.change("request_begin", "'30ms'", "'1s'");
  auto holder = world.database.session();
  must(holder.exec_script("BEGIN"));
  CHECK(must(test::begin_request(holder, "pay:t", "long")).verdict == "execute");
  world.age("pay");
  auto closing = std::async(std::launch::async, [&] {
    auto session = world.database.session();
    return std::string(must(session.exec("SELECT step FROM request_maintain()")).text(0, 0));
  });
  auto other = world.database.session();
  double worst = 0;
  do {
    const auto from = std::chrono::steady_clock::now();
    CHECK(pay_once(other, "pay:t", std::to_string(from.time_since_epoch().count())) == "execute");
    worst = std::max(
        worst, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - from).count());
  } while (closing.wait_for(std::chrono::milliseconds(0)) != std::future_status::ready);
  CHECK(closing.get() == "waiting");
  MESSAGE("the longest begin took ", worst, " ms");
  must(holder.exec_script("COMMIT"));
  CHECK(world.maintain() == "done");
  CHECK(world.number("SELECT count(*) FROM idempotency_period WHERE closed_at IS NOT NULL") == 1);
}

}  // namespace outbox
