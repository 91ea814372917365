#include "examples/demo/bank.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "examples/demo/pace.hpp"
#include "tests/support/postgres.hpp"

namespace demo {
namespace {

using outbox::Status;
using outbox::pg::Params;
using outbox::pg::Session;
using outbox::test::must;

// `moves` counts an account's movements. It travels in the message, so that the ledger can see whether it got
// every movement of an account, once, and in order.
constexpr std::string_view bank_tables = R"sql(
  CREATE ROLE bank LOGIN;
  GRANT outbox_app TO bank;
  CREATE SCHEMA bank AUTHORIZATION bank;
  SET ROLE bank;
  CREATE TABLE bank.account (
    id      int    PRIMARY KEY,
    balance bigint NOT NULL CHECK (balance >= 0),
    moves   bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);
  CREATE TABLE bank.transfer (
    id     bigint PRIMARY KEY,
    payer  int    NOT NULL REFERENCES bank.account,
    payee  int    NOT NULL REFERENCES bank.account,
    amount bigint NOT NULL CHECK (amount > 0));
  CREATE TABLE bank.rolled_back (transfer bigint PRIMARY KEY, why text NOT NULL);
  RESET ROLE;
)sql";

struct Transfer {
  std::int64_t id;
  std::int64_t payer;
  std::int64_t payee;
  std::int64_t amount;
  bool abandoned;  ///< the caller changes its mind when all is written: ROLLBACK
};

// Half of the movements go to a tenth of the accounts: they contend for the same rows.
class Traffic {
 public:
  Traffic(int accounts, std::uint64_t seed) : accounts_(accounts), random_(seed) {}

  Transfer next(std::int64_t id) {
    Transfer t{id, account(), account(), number(1, 20'000), number(1, 40) == 1};
    while (t.payee == t.payer) t.payee = account();
    return t;
  }

 private:
  std::int64_t number(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  std::int64_t account() { return number(1, number(0, 1) == 0 ? std::max(2, accounts_ / 10) : accounts_); }

  int accounts_;
  std::mt19937_64 random_;
};

// Both rows are locked before anything is written, the lower id first: no deadlock, and the messages of an
// account are inserted in the order in which its movements commit.
constexpr std::string_view lock_both =
    "SELECT id, balance FROM bank.account WHERE id IN ($1, $2) ORDER BY id FOR UPDATE";
constexpr std::string_view move_money =
    "UPDATE bank.account SET balance = balance + $2, moves = moves + 1 WHERE id = $1 RETURNING moves";
constexpr std::string_view note_transfer =
    "INSERT INTO bank.transfer (id, payer, payee, amount) VALUES ($1, $2, $3, $4)";
constexpr std::string_view tell = "INSERT INTO outbox_msg (topic, msg_key, body) VALUES ($1, $2, $3)";
constexpr std::string_view note_rollback = "INSERT INTO bank.rolled_back (transfer, why) VALUES ($1, $2)";

class Teller {
 public:
  explicit Teller(const CoreOptions& options)
      : session_(must(Session::connect({.uri = options.postgres, .application_name = "demo core"}))),
        topic_(options.topic) {}

  void make(const Transfer& t) {
    std::string why;
    const Status done = session_.transaction([&](Session&) -> Status {
      why = write(t);
      if (!why.empty()) return outbox::failure(outbox::Disposition::quarantine, why);
      return {};
    });
    if (done) return;
    if (why.empty()) throw std::runtime_error(done.error().text());
    must(session_.exec_prepared(note_rollback, Params().i64(t.id).text(why)));
  }

 private:
  // Shape: why the transaction must roll back; empty: it may commit.
  std::string write(const Transfer& t) {
    const auto locked = must(session_.exec_prepared(lock_both, Params().i64(t.payer).i64(t.payee)));
    const int payer_row = locked.integer(0, 0) == t.payer ? 0 : 1;
    if (locked.integer(payer_row, 1) < t.amount) return "not enough money";
    must(session_.exec_prepared(note_transfer, Params().i64(t.id).i64(t.payer).i64(t.payee).i64(t.amount)));
    move(t, t.payer, -t.amount);
    move(t, t.payee, t.amount);
    return t.abandoned ? "abandoned" : "";
  }

  void move(const Transfer& t, std::int64_t account, std::int64_t amount) {
    const auto moved = must(session_.exec_prepared(move_money, Params().i64(account).i64(amount)));
    const std::string body =
        "{\"transfer\":" + std::to_string(t.id) + ",\"account\":" + std::to_string(account) +
        ",\"amount\":" + std::to_string(amount) + ",\"move\":" + std::to_string(moved.integer(0, 0)) + "}";
    must(session_.exec_prepared(tell, Params().text(topic_).text(std::to_string(account)).untyped(body)));
  }

  Session session_;
  std::string topic_;
};

}  // namespace

void open_bank(Session& owner, int accounts) {
  must(owner.exec_script(bank_tables));
  must(owner.exec("INSERT INTO bank.account (id, balance) SELECT n, $2 FROM generate_series(1, $1) n",
                  Params().i32(accounts).i64(opening_balance)));
}

void run_core(const CoreOptions& options) {
  std::atomic<std::int64_t> last{0};
  std::mutex failed_lock;
  std::exception_ptr failed;
  const Pace pace(options.rate);
  const auto work = [&](std::uint64_t seed) {
    try {
      Teller teller(options);
      Traffic traffic(options.accounts, seed);
      for (std::int64_t id = ++last; id <= options.transfers; id = ++last) {
        pace.await(id);
        teller.make(traffic.next(id));
      }
    } catch (...) {
      const std::lock_guard lock(failed_lock);
      failed = std::current_exception();
    }
  };
  std::vector<std::jthread> tellers;
  tellers.reserve(static_cast<std::size_t>(options.connections));
  for (int i = 0; i < options.connections; ++i)
    tellers.emplace_back(work, options.seed * 1000 + static_cast<std::uint64_t>(i));
  for (auto& teller : tellers) teller.join();
  if (failed) std::rethrow_exception(failed);
}

}  // namespace demo
