#include "bench/consumer/measure.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {
namespace {

using outbox::Inbox;
using outbox::Message;
using outbox::Record;
using outbox::Transaction;
using outbox::test::must;
using Clock = std::chrono::steady_clock;

double seconds(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

outbox::Handler apply(Ledger how) {
  switch (how) {
    case Ledger::one_answer:
      return [](Transaction& tx, const Message& message) {
        const auto balance = tx.exec(update_balance, message.key());
        tx.send(insert_entry, message.body(), balance.text(0, 0));
      };
    case Ledger::no_answer:
      return [](Transaction& tx, const Message& message) {
        tx.send(update_balance, message.key());
        tx.send(insert_entry, message.body(), std::nullopt);
      };
    case Ledger::all_answers:
      break;
  }
  return [](Transaction& tx, const Message& message) {
    const auto balance = tx.exec(update_balance, message.key());
    static_cast<void>(tx.exec(insert_entry, message.body(), balance.text(0, 0)));
  };
}

/// The same on a bare connection.
void apply_bare(outbox::pg::Session& session, const Record& record, Ledger how) {
  outbox::pg::Params key, entry;
  key.untyped(record.key);
  entry.untyped(record.body);
  if (how == Ledger::no_answer) {
    must(session.send(update_balance, key));
    return must(session.send(insert_entry, entry.null()));
  }
  must(session.send(update_balance, key));
  const auto received = session.receive();
  if (received.error) throw std::runtime_error(received.error->text());
  entry.untyped(received.rows.back().text(0, 0));
  if (how == Ledger::one_answer) return must(session.send(insert_entry, entry));
  must(session.exec_prepared(insert_entry, entry, outbox::pg::Format::text));
}

void apply_span(Transaction& tx, std::span<const Message> messages) {
  std::string bodies = "[", keys = "{";
  for (const auto& message : messages) {
    bodies.append(bodies.size() > 1 ? "," : "").append(*message.body());
    keys.append(keys.size() > 1 ? "," : "").append(*message.key());
  }
  static_cast<void>(
      tx.exec("INSERT INTO entry (account, cents) SELECT m->>'account', (m->>'cents')::bigint FROM "
              "jsonb_array_elements($1) m",
              bodies + "]"));
  static_cast<void>(tx.exec(
      "INSERT INTO account (id, cents) SELECT k, count(*) FROM unnest($1::text[]) k GROUP BY k ORDER BY k"
      " ON CONFLICT (id) DO UPDATE SET cents = account.cents + excluded.cents",
      keys + "}"));
}

Messages take(Numbers& numbers, int count) {
  const auto first = numbers.next;
  numbers.next += count;
  return {first, count};
}

void expect(LedgerStage& stage, int messages) {
  const auto rows = must(stage.session().exec(
      "SELECT (SELECT count(*) FROM entry), (SELECT coalesce(sum(cents), 0)::bigint FROM account)"));
  if (rows.integer(0, 0) != messages || rows.integer(0, 1) != messages)
    throw std::runtime_error("the run lost or doubled messages");
}

template <class AnyHandler>
double inbox_per_s(LedgerStage& stage, Numbers& numbers, int messages, std::size_t rows,
                   const AnyHandler& handler) {
  stage.empty_ledger();
  const Messages made = take(numbers, messages);
  Inbox inbox(stage.inbox());
  inbox.check();
  const double took = seconds([&] {
    for (std::span<const Record> left = made.records(); !left.empty();
         left = left.subspan(std::min(rows, left.size())))
      for (const auto& outcome : inbox.process(left.first(std::min(rows, left.size())), handler))
        if (outcome.fate != outbox::Fate::applied) throw std::runtime_error(outcome.reason);
  });
  expect(stage, messages);
  return messages / took;
}

}  // namespace

double one_by_one_per_s(LedgerStage& stage, Numbers& numbers, int messages, Ledger how) {
  return inbox_per_s(stage, numbers, messages, 1, apply(how));
}

double batches_per_s(LedgerStage& stage, Numbers& numbers, int messages, Ledger how) {
  return inbox_per_s(stage, numbers, messages, batch_rows, apply(how));
}

double spans_per_s(LedgerStage& stage, Numbers& numbers, int messages) {
  return inbox_per_s(stage, numbers, messages, batch_rows, outbox::SpanHandler(apply_span));
}

double without_dedup_per_s(LedgerStage& stage, Numbers& numbers, int messages, Ledger how) {
  stage.empty_ledger();
  const Messages made = take(numbers, messages);
  auto session = must(outbox::pg::Session::connect({.uri = stage.inbox().postgres}));
  const double took = seconds([&] {
    for (std::span<const Record> left = made.records(); !left.empty();) {
      const auto batch = left.first(std::min(std::size_t{batch_rows}, left.size()));
      left = left.subspan(batch.size());
      must(session.exec("BEGIN"));
      for (const auto& record : batch) apply_bare(session, record, how);
      if (const auto received = session.receive(); received.error)
        throw std::runtime_error(received.error->text());
      must(session.exec("COMMIT"));
    }
  });
  expect(stage, messages);
  return messages / took;
}

ClaimTimes claim_times(LedgerStage& small, LedgerStage& large, Numbers& numbers, int batches) {
  const outbox::SpanHandler nothing = [](Transaction&, std::span<const Message>) {};
  Inbox inboxes[] = {Inbox(small.inbox()), Inbox(large.inbox())};
  std::vector<double> times[2];
  for (int i = 0; i < 2 * batches; ++i) {
    const Messages made = take(numbers, batch_rows);
    auto& inbox = inboxes[i % 2];
    times[i % 2].push_back(1000 *
                           seconds([&] { static_cast<void>(inbox.process(made.records(), nothing)); }));
  }
  for (auto& one : times) std::ranges::sort(one);
  return {times[0][times[0].size() / 2], times[1][times[1].size() / 2]};
}

}  // namespace bench
