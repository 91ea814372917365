#pragma once
// An Inbox's connection: made when it is needed, given up when it is no longer fit, and the transactions run
// on it. Each new one says how long the consumer must remember, before anything is claimed on it. Thread: one
// at a time, but for cancel().

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "consumer/inbox/whole_transaction.hpp"

namespace outbox {

class InboxSession {
 public:
  using Work = std::function<BatchResult(const InboxContext&)>;

  InboxSession(const InboxOptions& options, Statements statements)
      : uri_(options.postgres),
        consumer_(options.name),
        guard_(options.guard),
        id_of_(options.id_of),
        horizon_(options.horizon),
        statements_(std::move(statements)) {}

  /// Runs `work`, and repeats it at once, a few times, where that may help: after a deadlock, a restarted
  /// server, an id that came or went. Errors: as RolledBack; a server that can't be reached is transient, and
  /// nobody's.
  [[nodiscard]] BatchResult run(const Work& work);

  /// Whether the tables are there and may be used. Errors: as the database says; fatal with what to do.
  [[nodiscard]] Status check();

  /// See Inbox::maintain().
  [[nodiscard]] Result<Upkeep> maintain();

  /// See Inbox::claim_partition().
  [[nodiscard]] Result<PartitionClaim> claim_partition(std::string_view topic, std::int32_t partition);

  /// See Inbox::start_partition().
  [[nodiscard]] Result<std::int64_t> start_partition(std::string_view topic, std::int32_t partition,
                                                     std::int64_t next);

  [[nodiscard]] const IdOf& id_of() const noexcept { return id_of_; }

  /// Its handlers were seen to need a transaction for each message, so that batches are not tried any more.
  [[nodiscard]] bool one_by_one() const noexcept { return one_by_one_; }
  void go_one_by_one() noexcept { one_by_one_ = true; }

  /// For how long the record, the first of its partition that is not settled, has met an environment failure.
  [[nodiscard]] Millis in_environment_for(const Record& record);

  /// Asks the server to cancel what runs now, and has run() repeat nothing and begin nothing until the next
  /// forget_cancel(). Any thread.
  void cancel() noexcept;
  /// At the start of a call of the inbox: a cancel that came before it was meant for another.
  void forget_cancel() noexcept { cancelled_ = false; }
  /// Ends the connection under whatever waits for it, and has nothing begin on this session any more. Any
  /// thread.
  void abandon() noexcept;

 private:
  [[nodiscard]] Status connect();
  [[nodiscard]] Status register_consumer();
  [[nodiscard]] bool ending() const noexcept { return cancelled_ || abandoned_; }
  void disconnect();
  [[nodiscard]] BatchResult once(const Work& work);

  std::string uri_;
  std::string consumer_;
  Guard guard_;
  IdOf id_of_;
  std::chrono::hours horizon_;
  Statements statements_;
  std::string body_type_;
  bool one_by_one_ = false;
  struct Ailing {
    std::int64_t offset = -1;
    MonoTime since{};
  };
  std::map<std::pair<std::string, std::int32_t>, Ailing> ailing_;  // by topic and partition
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> abandoned_{false};
  std::mutex mutex_;  // guards that session_ is there against cancel(); the owner's thread alone changes it
  std::optional<pg::Session> session_;
};

}  // namespace outbox
