#pragma once
// A payment core under load: several connections make transfers at random between a few accounts. A transfer
// is one transaction that moves the money, notes the transfer and inserts its two messages, the debit keyed
// by the payer and the credit keyed by the payee; about one in ten changes its mind when all is written and
// rolls back.
//
//   bank_account (account, opening, balance)          bank_transfer (transfer, payer, payee, amount)
//
// Lifecycle: made → begin() … finish() → begin() … → destroyed, which waits for the writers. The writers are
// threads of its own; made() may be called meanwhile, everything else is for one thread.

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace outbox::test {

struct BankOptions {
  std::string postgres;  ///< a migrated database; the bank's tables are made in it
  std::string topic;
  int accounts = 30;
  int connections = 4;
};

class Bank {
 public:
  explicit Bank(BankOptions options);

  /// The writers make `transfers` more, whatever becomes of those, and `seed` says which.
  void begin(std::int64_t transfers, std::uint64_t seed);
  /// How many of them have been committed or rolled back.
  [[nodiscard]] std::int64_t made() const { return made_; }
  /// Blocks until all are made. Errors: std::runtime_error of the writer that failed.
  void finish();

 private:
  void write(std::uint64_t seed);

  BankOptions options_;
  std::int64_t next_ = 1;  ///< the transfer that a round begins with: no two share a number
  std::int64_t end_ = 1;
  std::atomic<std::int64_t> taken_{0};
  std::atomic<std::int64_t> made_{0};
  std::mutex failed_lock_;
  std::exception_ptr failed_;
  std::vector<std::jthread> writers_;
};

}  // namespace outbox::test
