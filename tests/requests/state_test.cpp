// The verdicts, the fence, and what each SQLSTATE means, by SQL alone.

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <map>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "requests_database.hpp"

namespace outbox {
namespace {

using test::begin_request;
using test::Begun;
using test::finish_request;
using test::must;
using test::pay_once;
using test::RequestsDatabase;
using test::retry_request;

void time_out(RequestsDatabase& world) {
  must(world.session.exec_script(
      "UPDATE idempotency_keys SET deadline = clock_timestamp() WHERE deadline IS NOT NULL"));
}

std::string code(const Status& status) {
  return status ? "" : status.error().code;
}

}  // namespace

TEST_CASE("each verdict of begin") {
  RequestsDatabase world;
  auto& s = world.session;
  const auto first = must(begin_request(s, "pay:t", "k"));
  CHECK(first.verdict == "execute");
  CHECK(first.attempt == "1");
  CHECK(must(begin_request(s, "pay:t", "k")).verdict == "in_progress");
  CHECK(must(begin_request(s, "pay:other", "k")).verdict == "execute");  // another tenant's
  CHECK(must(begin_request(s, "pay:t", "k", "", "other")).verdict == "mismatch");
  CHECK(must(begin_request(s, "pay:t", "k", first.owner)).verdict ==
        "execute");  // who lost the answer to its COMMIT
  time_out(world);
  const auto second = must(begin_request(s, "pay:t", "k", first.owner));
  CHECK(second.verdict == "recover");
  CHECK(second.attempt == "2");
  CHECK(second.operation_id == first.operation_id);
  must(retry_request(s, "pay:t", "k", second));
  const auto third = must(begin_request(s, "pay:t", "k"));
  CHECK(third.verdict == "execute");
  CHECK(third.attempt == "3");
  CHECK(third.operation_id == first.operation_id);
  must(finish_request(s, "request_fail", "pay:t", "k", third));
  CHECK(must(begin_request(s, "pay:t", "k")).verdict == "replay");
  CHECK(world.text("SELECT state || convert_from(response_body, 'UTF8') FROM request_status('pay:t', 'k')") ==
        "faileddone");
  CHECK(world.text("SELECT state FROM request_status('pay:t', 'none')") == "none");
  CHECK(must(begin_request(s, "pay:t", "")).verdict == "malformed");
  CHECK(must(begin_request(s, "pay:t", std::string(255, 'k'))).verdict == "execute");
  CHECK(must(begin_request(s, "pay:t", std::string(256, 'k'))).verdict == "malformed");
}

TEST_CASE("the same key with another payload is a mismatch, and nothing is written") {
  RequestsDatabase world;
  CHECK(pay_once(world.session, "pay:t", "k") == "execute");
  const auto before = world.text("SELECT k::text || ctid::text FROM idempotency_keys k");
  CHECK(pay_once(world.session, "pay:t", "k", "other") == "mismatch");
  CHECK(world.text("SELECT k::text || ctid::text FROM idempotency_keys k") == before);
  CHECK(world.number("SELECT count(*) FROM effect") == 1);
}

TEST_CASE("a worker that was overtaken is fenced by an SQLSTATE, and its effect is rolled back") {
  RequestsDatabase world;
  auto slow = world.database.session();
  const auto first = must(begin_request(slow, "pay:t", "k"));
  time_out(world);
  const auto second = must(begin_request(world.session, "pay:t", "k"));
  CHECK(second.verdict == "recover");
  for (const std::string finish : {"request_succeed", "request_fail", "request_retry"}) {
    const Status zombie = slow.transaction([&](pg::Session& s) -> Status {
      must(s.exec("INSERT INTO effect VALUES ('k', 1)"));
      return finish == "request_retry" ? retry_request(s, "pay:t", "k", first)
                                       : finish_request(s, finish, "pay:t", "k", first);
    });
    CHECK(code(zombie) == "RQ001");
  }
  CHECK(world.number("SELECT count(*) FROM effect") == 0);
  must(finish_request(world.session, "request_succeed", "pay:t", "k", second));
  CHECK(code(finish_request(world.session, "request_succeed", "pay:t", "k", second)) == "RQ002");
  CHECK(code(finish_request(slow, "request_succeed", "pay:t", "k", first)) == "RQ001");
  CHECK(code(finish_request(slow, "request_succeed", "pay:t", "never", first)) == "RQ006");
}

TEST_CASE(
    "a key deleted by hand and begun anew is not its old worker's: the same attempt of another "
    "owner is fenced") {
  RequestsDatabase world;
  const auto first = must(begin_request(world.session, "pay:t", "k"));
  must(world.session.exec_script("DELETE FROM idempotency_keys"));
  CHECK(must(begin_request(world.session, "pay:t", "k")).attempt == "1");
  CHECK(code(finish_request(world.session, "request_succeed", "pay:t", "k", first)) == "RQ001");
}

TEST_CASE(
    "the sweep takes what is overdue under a new attempt, once, and passes over what another has "
    "locked") {
  RequestsDatabase world;
  for (const auto* key : {"a", "b", "c"}) must(begin_request(world.session, "pay:t", key));
  CHECK(pay_once(world.session, "pay:t", "done") == "execute");
  const std::string sweep = "SELECT count(*) FROM request_recover(gen_random_uuid())";
  CHECK(world.number(sweep) == 0);
  time_out(world);
  auto other = world.database.session();
  must(other.exec_script("BEGIN; SELECT FROM idempotency_keys WHERE key = 'b' FOR UPDATE"));
  CHECK(world.number(sweep) == 2);
  must(other.exec_script("ROLLBACK"));
  CHECK(world.number(sweep) == 1);
  CHECK(world.number(sweep) == 0);
  CHECK(world.number("SELECT sum(attempt) FROM idempotency_keys WHERE key <> 'done'") == 6);
}

TEST_CASE(
    "a request of the transaction shape that was committed unfinished is recovered, never executed "
    "again") {
  RequestsDatabase world;
  CHECK(must(begin_request(world.session, "pay:t", "k", "", "same", ", 1, '{}', 'transaction'")).verdict ==
        "execute");
  CHECK(must(begin_request(world.session, "pay:t", "k")).verdict == "in_progress");
  must(world.session.exec_script("UPDATE idempotency_keys SET started_at = started_at - interval '1 hour'"));
  CHECK(must(begin_request(world.session, "pay:t", "k")).verdict == "recover");
}

TEST_CASE("a new recipe of the hash turns no retry into a mismatch") {
  RequestsDatabase world;
  auto& s = world.session;
  CHECK(pay_once(s, "pay:t", "k") == "execute");
  CHECK(must(begin_request(s, "pay:t", "k", "", "new recipe", ", 2, ARRAY[sha256('same')]")).verdict ==
        "replay");
  CHECK(must(begin_request(s, "pay:t", "k", "", "new recipe", ", 2, ARRAY[sha256('other')]")).verdict ==
        "mismatch");
  const auto without = begin_request(s, "pay:t", "k", "", "new recipe", ", 2");
  REQUIRE(!without);
  CHECK(without.error().code == "RQ004");
}

TEST_CASE("what a program does wrong is an error with an SQLSTATE of the contract") {
  RequestsDatabase world;
  auto& s = world.session;
  const auto sqlstate = [&](const std::string& sql) {
    const auto done = s.exec(sql);
    return done ? std::string() : done.error().code;
  };
  CHECK(sqlstate("SELECT request_begin('nobody:t', 'k', sha256('x'))") == "RQ003");
  CHECK(sqlstate("SELECT request_begin('pay:t', 'k', 'short')") == "22023");
  CHECK(sqlstate("SELECT request_begin('', 'k', sha256('x'))") == "22023");
  CHECK(sqlstate("SELECT request_declare_class('x', '1 day', '20 hours', '5 hours')") == "23514");
  CHECK(sqlstate("SELECT request_declare_class('y', '30 days', '1 day', '1 day')").empty());
  CHECK(sqlstate("SELECT request_declare('pay', 'y')") == "RQ005");
  must(s.exec_script("BEGIN ISOLATION LEVEL REPEATABLE READ"));
  CHECK(sqlstate("SELECT request_begin('pay:t', 'k', sha256('x'))") == "0A000");
  must(s.exec_script("ROLLBACK"));
}

TEST_CASE("an issued key is known as malformed, and as expired when it is too old to be remembered") {
  RequestsDatabase world;
  auto& s = world.session;
  must(s.exec_script("SELECT request_declare('pay', 'pay', '1 minute', 'issued')"));
  const std::string key = world.text("SELECT request_issue_key()");
  CHECK(pay_once(s, "pay:t", key) == "execute");
  CHECK(pay_once(s, "pay:t", key) == "replay");
  CHECK(pay_once(s, "pay:t", "mine") == "malformed");
  CHECK(pay_once(s, "pay:t", world.text("SELECT gen_random_uuid()::text")) == "malformed");
  CHECK(pay_once(s, "pay:t", "01200000-0000-7000-8000-000000000000") == "expired");
  CHECK(pay_once(s, "pay:t", "ffffffff-0000-7000-8000-000000000000") == "malformed");
}

TEST_CASE("copies of a request wait for the first for a second at most, and lock_timeout is as before") {
  RequestsDatabase world;
  auto holder = world.database.session();
  must(holder.exec_script("BEGIN"));
  CHECK(must(begin_request(holder, "pay:t", "k")).verdict == "execute");
  CHECK(must(begin_request(world.session, "pay:t", "k")).verdict == "in_progress");
  CHECK(world.text("SHOW lock_timeout") == "0");
  must(holder.exec_script("ROLLBACK"));
  CHECK(must(begin_request(world.session, "pay:t", "k")).verdict == "execute");
}

TEST_CASE("a commit that is not durable is made so") {
  RequestsDatabase world;
  auto& s = world.session;
  must(s.exec_script("SET synchronous_commit = off; BEGIN"));
  CHECK(must(begin_request(s, "pay:t", "k")).verdict == "execute");
  CHECK(world.text("SHOW synchronous_commit") == "on");
  must(s.exec_script("COMMIT"));
  CHECK(world.text("SHOW synchronous_commit") == "off");
}

TEST_CASE("outbox_requests may call the functions and touch no table, others may do neither") {
  RequestsDatabase world;
  auto& s = world.session;
  relay::MigrateOptions options;
  options.only = {"requests"};
  must(relay::apply_grants(s, options));
  const std::string other = "rq_" + world.database.name();
  must(s.exec_script("CREATE ROLE " + other));
  const auto as = [&](const std::string& role, const std::string& sql) {
    must(s.exec_script("SET ROLE " + role));
    const auto done = s.exec(sql);
    must(s.exec_script("RESET ROLE"));
    return done ? std::string() : done.error().code;
  };
  const std::string owner = "'11111111-1111-4111-8111-111111111111'";
  CHECK(as("outbox_requests", "SELECT request_begin('pay:t', 'k', sha256('x'), " + owner + ")").empty());
  CHECK(as("outbox_requests", "SELECT request_succeed('pay:t', 'k', 1, " + owner + ", 200)").empty());
  CHECK(as("outbox_requests", "SELECT request_maintain()").empty());
  CHECK(as("outbox_requests", "SELECT request_issue_key()").empty());
  CHECK(as("outbox_requests", "UPDATE idempotency_keys SET status = 'FAILED'") == "42501");
  CHECK(as("outbox_requests", "SELECT request_purge(now(), 'x')") == "42501");
  CHECK(as("outbox_monitor", "SELECT * FROM request_overview").empty());
  CHECK(as("outbox_monitor", "SELECT key FROM idempotency_keys") == "42501");
  CHECK(as(other, "SELECT request_begin('pay:t', 'k', sha256('x'))") == "42501");
  CHECK(as(other, "SELECT request_succeed('pay:t', 'k', 1, " + owner + ", 200)") == "42501");
  must(s.exec_script("DROP ROLE " + other));
}

TEST_CASE(
    "twenty clients with the same key at once, again and again: one effect, and every other is "
    "told so") {
  RequestsDatabase world;
  constexpr std::size_t clients = 20;
  constexpr int rounds = 40;
  std::vector<std::map<std::string, int>> said(clients);
  std::vector<std::jthread> threads;
  for (std::size_t client = 0; client < clients; ++client)
    threads.emplace_back([&, client] {
      auto session = world.database.session();
      for (int round = 0; round < rounds; ++round)
        ++said[client][pay_once(session, "pay:t", std::to_string(round))];
    });
  threads.clear();
  std::map<std::string, int> all;
  for (const auto& one : said)
    for (const auto& [verdict, count] : one) all[verdict] += count;
  CHECK(all["execute"] == rounds);
  CHECK(all["replay"] + all["in_progress"] == rounds * 19);
  CHECK(world.number("SELECT count(*) FROM effect") == rounds);
}

namespace {

// Three clients and one key, each step a transaction: what each holds, and a third party that knows an operation once.
struct Model {
  RequestsDatabase& world;
  std::string key;
  std::vector<std::optional<Begun>> held = std::vector<std::optional<Begun>>(3);
  std::vector<bool> called = std::vector<bool>(3);
  std::set<std::string> operations{};  ///< that reached the third party
  bool success_said = false;

  void step(std::size_t client, int what) {
    auto& mine = held[client];
    auto& s = world.session;
    const auto effect_and = [&](const std::string& finish) {
      return s.transaction([&](pg::Session& t) -> Status {
        must(t.exec("INSERT INTO effect VALUES (" + test::in_quotes(key) + ", " + mine->attempt + ")"));
        return finish_request(t, finish, "pay:t", key, *mine);
      });
    };
    switch (what) {
      case 0: {  // ask
        auto begun = must(begin_request(s, "pay:t", key));
        if (begun.verdict == "replay") success_said = true;
        if (begun.verdict == "execute" || begun.verdict == "recover") {
          called[client] = begun.verdict == "recover";
          mine = begun;
        }
        break;
      }
      case 1:  // the call leaves
        if (mine && !called[client]) operations.insert(mine->operation_id), called[client] = true;
        break;
      case 2:  // its success is written back, with the effect
        if (mine && operations.contains(mine->operation_id)) {
          if (effect_and("request_succeed")) success_said = true;
          mine.reset();
        }
        break;
      case 3:  // it provably never left
        if (mine && !operations.contains(mine->operation_id)) {
          static_cast<void>(retry_request(s, "pay:t", key, *mine));
          mine.reset();
        }
        break;
      case 4:  // time passes
        time_out(world);
        break;
      default:  // killed
        mine.reset();
    }
  }
  bool lawful() {
    const auto effects = world.number("SELECT count(*) FROM effect WHERE key = " + test::in_quotes(key));
    return operations.size() <= 1 && effects <= 1 && (!success_said || effects == 1);
  }
};

// Whether some history of `histories` breaks the law.
bool breaks(RequestsDatabase& world, int histories) {
  for (int i = 0; i < histories; ++i) {
    Model model{world, "m" + std::to_string(i)};
    std::uint64_t seed = 88172645463325252U + static_cast<std::uint64_t>(i);
    for (int step = 0; step < 30; ++step) {
      seed = seed * 6364136223846793005U + 1442695040888963407U;
      model.step((seed >> 33) % 3, static_cast<int>((seed >> 40) % 6));
    }
    if (!model.lawful()) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("whatever three clients do with one key, there is one effect if any answer says success") {
  RequestsDatabase world;
  int number = 0;
  CHECK(rc::check([&](const std::vector<std::pair<unsigned, unsigned>>& steps) {
    Model model{world, "rc" + std::to_string(number++)};
    for (const auto& [client, what] : steps) {
      model.step(client % 3, static_cast<int>(what % 6));
      RC_ASSERT(model.lawful());
    }
  }));
  CHECK(!breaks(world, 30));
}

TEST_CASE("the model catches a write-back that is not fenced") {
  RequestsDatabase world;
  world.change(
      "request_finish",
      "AND k.status = 'PROCESSING' AND k.attempt = request_finish.attempt AND k.owner = request_finish.owner",
      "");
  CHECK(breaks(world, 200));
}

TEST_CASE("the model catches a fence that answers nothing in place of an error") {
  RequestsDatabase world;
  world.change("request_finish", "IF FOUND THEN\n    RETURN;", "IF true THEN RETURN;");
  CHECK(breaks(world, 200));
}

TEST_CASE("the model catches an outside operation that is numbered by attempt") {
  RequestsDatabase world;
  world.change("request_begin", "attempt = k.attempt + 1,",
               "attempt = k.attempt + 1, operation_id = gen_random_uuid(),");
  world.change("request_begin", "ELSE 'recover' END, k.attempt INTO verdict, attempt",
               "ELSE 'execute' END, k.attempt, k.operation_id INTO verdict, attempt, operation_id");
  CHECK(breaks(world, 200));
}

}  // namespace outbox
