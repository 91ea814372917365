#include "examples/demo/proof.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "examples/demo/bank.hpp"
#include "examples/demo/view.hpp"
#include "tests/support/postgres.hpp"

namespace demo {
namespace {

using outbox::pg::Session;
using outbox::test::KafkaRecord;
using outbox::test::must;

std::int64_t number(Session& session, std::string_view sql) {
  return must(session.exec(sql)).integer(0, 0);
}

// One movement of one account, as both sides write it down.
using Movement = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // transfer, account, amount
using Movements = std::map<Movement, std::int64_t>;                     // and how often it is there

Movements movements(Session& session, std::string_view sql) {
  const auto rows = must(session.exec(sql));
  Movements found;
  for (int i = 0; i < rows.size(); ++i)
    ++found[Movement{rows.integer(i, 0), rows.integer(i, 1), rows.integer(i, 2)}];
  return found;
}

std::string balances(Session& session, const std::string& schema) {
  return std::string(must(session.exec("SELECT string_agg(id || ':' || balance, ' ' ORDER BY id) FROM " +
                                       schema + ".account"))
                         .text(0, 0));
}

Law sums_are_equal(const Evidence& e) {
  const std::int64_t opening = opening_balance * number(e.bank, "SELECT count(*) FROM bank.account");
  const std::int64_t bank = number(e.bank, "SELECT sum(balance)::bigint FROM bank.account");
  const std::int64_t ledger = number(e.ledger, "SELECT sum(balance)::bigint FROM ledger.account");
  return {"no money appeared or vanished, and every account's balance is the same on both sides",
          opening == bank && bank == ledger && balances(e.bank, "bank") == balances(e.ledger, "ledger"),
          "opening " + grouped(opening) + ", bank " + grouped(bank) + ", ledger " + grouped(ledger)};
}

Law each_applied_once(const Evidence& e) {
  const Movements wanted = movements(e.bank,
                                     "SELECT id, payer, -amount FROM bank.transfer UNION ALL "
                                     "SELECT id, payee, amount FROM bank.transfer");
  const Movements found = movements(e.ledger, "SELECT transfer, account, amount FROM ledger.entry");
  std::int64_t missing = 0, doubled = 0, strange = 0;
  for (const auto& [movement, times] : wanted) missing += found.contains(movement) ? 0 : 1;
  for (const auto& [movement, times] : found) {
    doubled += times - 1;
    strange += wanted.contains(movement) ? 0 : 1;
  }
  return {"every committed transfer was applied exactly once",
          !wanted.empty() && missing == 0 && doubled == 0 && strange == 0,
          grouped(static_cast<std::int64_t>(wanted.size() / 2)) + " transfers, missing " + grouped(missing) +
              ", doubled " + grouped(doubled) + ", never made " + grouped(strange)};
}

Law none_rolled_back(const Evidence& e) {
  const auto rows = must(e.bank.exec("SELECT transfer FROM bank.rolled_back"));
  std::set<std::int64_t> rolled_back;
  for (int i = 0; i < rows.size(); ++i) rolled_back.insert(rows.integer(i, 0));
  const auto entries = must(e.ledger.exec("SELECT transfer FROM ledger.entry"));
  std::int64_t applied = 0;
  for (int i = 0; i < entries.size(); ++i) applied += rolled_back.contains(entries.integer(i, 0)) ? 1 : 0;
  return {"none of the rolled-back transfers was applied", applied == 0 && !rolled_back.empty(),
          grouped(rows.size()) + " rolled back, applied " + grouped(applied)};
}

Law order_was_kept(const Evidence& e) {
  const std::int64_t astray = number(e.ledger, "SELECT sum(out_of_order)::bigint FROM ledger.account");
  const std::int64_t bank = number(e.bank, "SELECT sum(moves)::bigint FROM bank.account");
  const std::int64_t ledger = number(e.ledger, "SELECT sum(last_move)::bigint FROM ledger.account");
  return {"each account's movements were applied in the order in which they committed",
          astray == 0 && bank == ledger, grouped(bank) + " movements, out of order " + grouped(astray)};
}

// A copy may follow later; what counts in Kafka is where a message stands first.
Law order_in_kafka(const Evidence& e) {
  std::set<std::string> seen;
  std::map<std::string, std::int64_t> last;
  std::int64_t astray = 0;
  for (const KafkaRecord& record : e.records) {
    if (!seen.insert(record.header("outbox-id").value_or("")).second) continue;
    const std::int64_t seq = std::stoll(record.header("outbox-seq").value_or("0"));
    std::int64_t& before = last[record.key.value_or("")];
    astray += seq <= before ? 1 : 0;
    before = std::max(before, seq);
  }
  const auto copies = static_cast<std::int64_t>(e.records.size() - seen.size());
  const std::int64_t rows = number(e.bank, "SELECT count(*) FROM outbox_msg");
  return {"Kafka has every message, the first copies in order",
          astray == 0 && static_cast<std::int64_t>(seen.size()) == rows,
          grouped(static_cast<std::int64_t>(e.records.size())) + " records of " + grouped(rows) +
              " messages: " + grouped(copies) + " copies, none with effect; out of order " + grouped(astray)};
}

Law nothing_is_left(const Evidence& e) {
  const std::int64_t unsent = number(e.bank, "SELECT count(*) FROM outbox_msg WHERE status <> 'SENT'");
  const std::int64_t dead = number(e.ledger, "SELECT count(*) FROM dead_msgs");
  return {"nothing waits, nothing is dead", unsent == 0 && dead == 0,
          "not sent " + grouped(unsent) + ", dead " + grouped(dead)};
}

}  // namespace

std::vector<Law> prove(const Evidence& evidence) {
  return {sums_are_equal(evidence), each_applied_once(evidence), none_rolled_back(evidence),
          order_was_kept(evidence), order_in_kafka(evidence),    nothing_is_left(evidence)};
}

}  // namespace demo
