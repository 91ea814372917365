#pragma once
// An Inbox's connection: made when it is needed, given up when it is no longer fit, and the transactions run
// on it. Thread: one at a time, but for cancel().

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "base/backoff.hpp"
#include "consumer/batch_transaction.hpp"

namespace outbox {

class InboxSession {
 public:
  InboxSession(std::string uri, std::string consumer, Statements statements)
      : uri_(std::move(uri)), consumer_(std::move(consumer)), statements_(std::move(statements)) {}

  /// Runs `work`, and repeats it at once, a few times, where that may help: after a deadlock, a restarted
  /// server, an id that came or went. Errors: as RolledBack; a server that can't be reached is transient, and
  /// nobody's.
  [[nodiscard]] BatchResult run(const std::function<BatchResult(BatchTransaction&)>& work);

  /// Whether the tables are there and may be used. Errors: as the database says; fatal with what to do.
  [[nodiscard]] Status check();

  /// Asks the server to cancel what runs now. Any thread.
  void cancel() noexcept;

 private:
  [[nodiscard]] Status connect();
  void disconnect();
  [[nodiscard]] BatchResult once(const std::function<BatchResult(BatchTransaction&)>& work);

  std::string uri_;
  std::string consumer_;
  Statements statements_;
  std::string body_type_;
  std::mutex mutex_;  // guards that session_ is there against cancel(); the owner's thread alone changes it
  std::optional<pg::Session> session_;
};

}  // namespace outbox
