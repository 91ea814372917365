// Messages that come after a later one: by outbox-seq, by the business's own versions, and what is told of
// it.

#include "consumer/core/overtaking.hpp"

#include <doctest/doctest.h>

#include <map>
#include <stdexcept>
#include <thread>

#include "letters.hpp"
#include "outbox/inbox.hpp"
#include "service_database.hpp"
#include "tests/support/eventually.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

Letter numbered(int n, std::int64_t seq, const std::string& key = "k",
                const std::string& source = "payments") {
  auto one = letter(v7(n), std::to_string(n), n);
  one.key = key;
  one.headers.emplace_back("outbox-seq", std::to_string(seq));
  one.headers.emplace_back("outbox-source", source);
  return one;
}

struct GuardedDatabase : ServiceDatabase {
  InboxOptions guarded() const {
    auto options = inbox();
    options.guard = Guard::by_seq;
    return options;
  }
};

std::vector<Verdict> verdicts(const std::vector<Outcome>& outcomes) {
  std::vector<Verdict> out;
  for (const auto& outcome : outcomes) out.push_back(outcome.verdict);
  return out;
}

}  // namespace

TEST_CASE("a scheduled message is applied though later ones of its key came first, and makes none stale") {
  GuardedDatabase db;
  Inbox inbox(db.guarded());
  auto scheduled = numbered(2, 10), far = numbered(3, 99);
  for (Letter* one : {&scheduled, &far})
    one->headers.emplace_back("outbox-due-at", "2026-12-03T15:05:00.123456Z");
  const std::vector batch = {numbered(1, 11), scheduled, far, numbered(4, 12)};
  CHECK(fates(inbox.process(records(batch), record_effect)) == std::vector(4, Fate::applied));
  CHECK(inbox.process(numbered(5, 11).record(), record_effect).verdict == Verdict::stale);
}

TEST_CASE("out of order, closed then paid: the guard holds the older one back, once and for all") {
  GuardedDatabase db;
  Inbox inbox(db.guarded());
  const auto paid = numbered(1, 10), closed = numbered(2, 11);
  CHECK(inbox.process(closed.record(), record_effect).fate == Fate::applied);
  const auto late = inbox.process(paid.record(), record_effect);
  CHECK(late.fate == Fate::skipped);
  CHECK(late.verdict == Verdict::stale);
  CHECK(late.reason.find("11") != std::string::npos);
  CHECK(db.effects() == 1);
  CHECK(db.text("SELECT state FROM processed_msgs WHERE msg_id = '" + v7(1) + "'") == "discarded");
  CHECK(inbox.process(paid.record(), record_effect).verdict == Verdict::duplicate);
}

TEST_CASE("each message that is applied raises its chain, and one that is stale does not lower it") {
  GuardedDatabase db;
  Inbox inbox(db.guarded());
  using enum Verdict;
  const std::pair<std::int64_t, Verdict> deliveries[] = {
      {5, fresh}, {9, fresh}, {7, stale}, {8, stale}, {10, fresh}};
  int n = 0;
  for (const auto& [seq, verdict] : deliveries)
    CHECK(inbox.process(numbered(++n, seq).record(), record_effect).verdict == verdict);
  CHECK(db.number("SELECT seq FROM inbox_seq") == 10);
}

TEST_CASE("without the guard, and for another key, topic or source, nothing is stale") {
  GuardedDatabase db;
  Inbox guarded(db.guarded());
  CHECK(guarded.process(numbered(1, 100).record(), record_effect).fate == Fate::applied);
  auto elsewhere = numbered(2, 1);
  elsewhere.topic = "other";
  auto keyless = numbered(5, 1);
  keyless.key = std::nullopt;
  for (const auto& one :
       {numbered(3, 1, "other"), numbered(4, 1, "k", "refunds"), elsewhere, keyless, letter(v7(6), "{}", 6)})
    CHECK(guarded.process(one.record(), record_effect).fate == Fate::applied);
  Inbox open(db.inbox("open"));
  CHECK(open.process(numbered(7, 2).record(), record_effect).fate == Fate::applied);
  CHECK(open.process(numbered(8, 1).record(), record_effect).fate == Fate::applied);
}

TEST_CASE("within a batch the messages before one count, those behind it do not") {
  GuardedDatabase db;
  Inbox inbox(db.guarded());
  const std::vector batch = {numbered(1, 5), numbered(2, 4), numbered(3, 6), numbered(4, 5), numbered(5, 7)};
  using enum Verdict;
  CHECK(verdicts(inbox.process(records(batch), record_effect)) ==
        std::vector{fresh, stale, fresh, stale, fresh});
  CHECK(db.effects() == 3);
  CHECK(db.number("SELECT seq FROM inbox_seq") == 7);
}

TEST_CASE("a message that failed or was rejected does not make those before it stale") {
  GuardedDatabase db;
  Inbox inbox(db.guarded());
  CHECK(
      inbox.process(numbered(1, 9).record(), [](Transaction&, const Message&) { throw Reject("no"); }).fate ==
      Fate::dead);
  CHECK(inbox
            .process(numbered(2, 8).record(),
                     [](Transaction&, const Message&) { throw std::runtime_error("no"); })
            .fate == Fate::failed);
  CHECK(inbox.process(numbered(3, 7).record(), record_effect).fate == Fate::applied);
}

TEST_CASE("two batches that meet on a chain wait for each other, and the later commit sees the earlier") {
  GuardedDatabase db;
  std::atomic<bool> inside = false, go = false;
  std::thread first([&] {
    Inbox inbox(db.guarded());
    static_cast<void>(inbox.process(numbered(1, 10).record(), [&](Transaction& tx, const Message& m) {
      record_effect(tx, m);
      inside = true;
      eventually("the second waits", [&] { return go.load(); });
    }));
  });
  eventually("the first is inside", [&] { return inside.load(); });
  Outcome second;
  std::thread other([&] {
    Inbox inbox(db.guarded());
    second = inbox.process(numbered(2, 9).record(), record_effect);
  });
  eventually("it waits for the chain", [&] {
    return db.number(
               "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
               " AND application_name LIKE 'outbox:%' AND wait_event_type = 'Lock'") > 0;
  });
  go = true;
  first.join();
  other.join();
  CHECK(second.verdict == Verdict::stale);
  CHECK(db.effects() == 1);
}

TEST_CASE("a version advances once, never back, and not where the transaction is rolled back") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  std::vector<bool> answers;
  const auto to = [&](std::int64_t version, bool fail = false) {
    return [&, version, fail](Transaction& tx, const Message&) {
      answers.push_back(tx.advance("order-4711", version));
      if (fail) throw Retry("later");
    };
  };
  CHECK(inbox.process(letter(v7(1)).record(), to(5, true)).fate == Fate::failed);
  CHECK(inbox.process(letter(v7(1)).record(), to(5)).fate == Fate::applied);
  CHECK(inbox.process(letter(v7(2)).record(), to(5)).fate == Fate::applied);
  CHECK(inbox.process(letter(v7(3)).record(), to(4)).fate == Fate::applied);
  CHECK(inbox.process(letter(v7(4)).record(), to(6)).fate == Fate::applied);
  CHECK(answers == std::vector{true, true, false, false, true});
  CHECK(db.number("SELECT version FROM inbox_version WHERE consumer = 'ledger' AND entity = 'order-4711'") ==
        6);
}

TEST_CASE("a handler that says stale leaves no effect and no dead letter, and its neighbours are applied") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  const std::vector batch = {letter(v7(1), "{}", 0), letter(v7(2), "{}", 1), letter(v7(3), "{}", 2)};
  const auto outcomes = inbox.process(records(batch), [](Transaction& tx, const Message& m) {
    record_effect(tx, m);
    if (m.offset() == 1) throw Stale("version 3 is there");
  });
  CHECK(fates(outcomes) == std::vector{Fate::applied, Fate::skipped, Fate::applied});
  CHECK(outcomes[1].verdict == Verdict::stale);
  CHECK(outcomes[1].reason == "version 3 is there");
  CHECK(db.effects() == 2);
  CHECK(db.dead() == 0);
  CHECK(inbox.process(batch[1].record(), record_effect).verdict == Verdict::duplicate);
}

TEST_CASE("each settled record is told once, with its verdict, after its commit") {
  GuardedDatabase db;
  auto options = db.guarded();
  std::map<Verdict, int> told;
  std::int64_t committed_at_first = -1;
  auto reader = db.database.session();
  options.on_outcome = [&](const Record&, const Outcome& outcome) {
    if (told.empty()) committed_at_first = must(reader.exec("SELECT count(*) FROM effect")).integer(0, 0);
    ++told[outcome.verdict];
  };
  Inbox inbox(options);
  auto differing = numbered(1, 5);
  differing.body = "other";
  const std::vector batch = {numbered(1, 5), numbered(2, 4), differing, Letter{.headers = {}},
                             numbered(1, 5)};
  static_cast<void>(inbox.process(records(batch), record_effect));
  CHECK(committed_at_first == 1);
  using enum Verdict;
  CHECK(told ==
        std::map<Verdict, int>{{fresh, 1}, {stale, 1}, {conflict, 1}, {malformed, 1}, {duplicate, 1}});
  static_cast<void>(
      inbox.process(numbered(9, 9).record(), [](Transaction&, const Message&) { throw Retry("no"); }));
  CHECK(told[fresh] == 1);
}

TEST_CASE("what is left for after the commit runs once, in order, and never after a rollback") {
  ServiceDatabase db;
  Inbox inbox(db.inbox());
  std::vector<int> ran;
  const std::vector batch = {letter(v7(1), "{}", 0), letter(v7(2), "{}", 1)};
  const auto outcomes = inbox.process(records(batch), [&](Transaction& tx, const Message& m) {
    const int n = static_cast<int>(m.offset());
    tx.after_commit([&, n] {
      ran.push_back(n);
      throw std::runtime_error("nobody hears this");
    });
    if (n == 1 && m.attempt() == 1) throw std::runtime_error("no");
  });
  CHECK(fates(outcomes) == std::vector{Fate::applied, Fate::failed});
  CHECK(ran == std::vector{0});
}
