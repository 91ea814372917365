#include "bank.hpp"

#include <random>

#include "tests/support/postgres.hpp"

namespace outbox::test {
namespace {

using pg::Params;
using pg::Session;

constexpr std::string_view bank_tables = R"sql(
  CREATE TABLE bank_account (account text COLLATE "C" PRIMARY KEY, opening bigint NOT NULL, balance bigint NOT NULL);
  CREATE TABLE bank_transfer (transfer text PRIMARY KEY, payer text NOT NULL, payee text NOT NULL, amount bigint NOT NULL);
)sql";
constexpr std::string_view open_accounts =
    "INSERT INTO bank_account SELECT 'a' || n, 1000000, 1000000 FROM generate_series(1, $1) n";

// Both rows are locked before a message is inserted, always in the same order: no deadlock, and the messages
// of an account have ids in the order in which its transfers commit.
constexpr std::string_view lock_both =
    "SELECT FROM bank_account WHERE account IN ($1, $2) ORDER BY account FOR UPDATE";
constexpr std::string_view move_money =
    "UPDATE bank_account SET balance = balance + CASE account WHEN $1 THEN -$3 ELSE $3 END"
    " WHERE account IN ($1, $2)";
constexpr std::string_view note_transfer =
    "INSERT INTO bank_transfer (payer, payee, amount, transfer) VALUES ($1, $2, $3, $4)";
constexpr std::string_view tell_both =
    "INSERT INTO outbox_msg (topic, msg_key, body)"
    " SELECT $5, account, json_build_object('transfer', $4, 'account', account, 'amount', amount)"
    " FROM (VALUES ($1, -$3), ($2, $3)) AS message (account, amount)";

struct Transfer {
  std::string id;
  std::string payer;
  std::string payee;
  std::int64_t amount;
  bool abandoned;
};

Transfer random_transfer(std::mt19937_64& random, std::int64_t id, int accounts) {
  const auto number = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  const int payer = number(1, accounts);
  const int payee = 1 + (payer - 1 + number(1, accounts - 1)) % accounts;
  return {std::to_string(id), "a" + std::to_string(payer), "a" + std::to_string(payee), number(1, 500),
          number(1, 10) == 1};
}

Status make(Session& session, const Transfer& t, const std::string& topic) {
  const auto both = [&] { return Params().text(t.payer).text(t.payee); };
  must(session.exec_prepared(lock_both, both()));
  must(session.exec_prepared(move_money, both().i64(t.amount)));
  must(session.exec_prepared(note_transfer, both().i64(t.amount).text(t.id)));
  must(session.exec_prepared(tell_both, both().i64(t.amount).text(t.id).text(topic)));
  if (t.abandoned) return failure(Disposition::quarantine, "abandoned");
  return {};
}

}  // namespace

Bank::Bank(BankOptions options) : options_(std::move(options)) {
  Session session = must(Session::connect({.uri = options_.postgres}));
  must(session.exec_script(bank_tables));
  must(session.exec(open_accounts, Params().i32(options_.accounts)));
}

void Bank::begin(std::int64_t transfers, std::uint64_t seed) {
  made_ = 0;
  taken_ = next_;
  next_ = end_ = next_ + transfers;
  for (int i = 0; i < options_.connections; ++i)
    writers_.emplace_back(&Bank::write, this, seed * 1000 + static_cast<std::uint64_t>(i));
}

void Bank::finish() {
  writers_.clear();
  if (failed_) std::rethrow_exception(failed_);
}

void Bank::write(std::uint64_t seed) try {
  Session session = must(Session::connect({.uri = options_.postgres, .application_name = "bank"}));
  std::mt19937_64 random(seed);
  for (std::int64_t id = taken_++; id < end_; id = taken_++) {
    const Transfer t = random_transfer(random, id, options_.accounts);
    const Status done = session.transaction([&](Session& s) { return make(s, t, options_.topic); });
    if (!done && !t.abandoned) throw std::runtime_error(done.error().text());
    ++made_;
  }
} catch (...) {
  const std::lock_guard lock(failed_lock_);
  failed_ = std::current_exception();
}

}  // namespace outbox::test
