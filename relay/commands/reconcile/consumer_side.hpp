#pragma once
// One named consumer as an auditor reads it: what it says it has processed, of one moment and in the order of
// the records, and what it has of single messages now. Two connections, read only. Blocks; one thread.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "base/uuid.hpp"
#include "relay/commands/reconcile/account.hpp"
#include "relay/commands/reconcile/cursor.hpp"

namespace outbox::commands {

struct ProcessedRow {
  Uuid msg_id{};
  std::string topic{};
  std::int32_t partition = -1;
  std::int64_t offset = -1;
};

/// Where consumers keep what they have processed.
struct ConsumerPlace {
  std::string uri{};
  std::string schema{"public"};
};

/// A message that a consumer should have.
struct Expected {
  std::int64_t id = 0;
  Uuid msg_id{};
  std::string topic{};
  std::int32_t partition = -1;
  std::int64_t offset = -1;
  std::optional<Sha256> body{};  ///< nullopt: a tombstone
  WallTime sent_at{};
};

class ConsumerSide {
 public:
  /// `topics`: what it is expected to read; empty: those of `sent` that it has processed something of.
  /// Errors: as pg::Session; fatal: no consumer of that name is known, or the tables are missing.
  [[nodiscard]] static Result<ConsumerSide> open(const ConsumerPlace& place, const std::string& consumer,
                                                 const std::vector<std::string>& topics,
                                                 const std::vector<std::string>& sent, WallTime since);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool reads(const std::string& topic) const;
  /// By (topic, partition, offset).
  [[nodiscard]] Cursor<ProcessedRow>& processed() { return *processed_; }
  /// Judges messages that it should have. `settled`: what was sent later may still be on its way. Findings go
  /// to `found`, the rest to `side`.
  [[nodiscard]] Status judge(std::span<const Expected> expected, WallTime settled, Side& side,
                             std::vector<Finding>& found);

 private:
  [[nodiscard]] Status know(const std::vector<std::string>& topics, const std::vector<std::string>& sent);
  ConsumerSide(pg::Session view, pg::Session now, std::string name, std::string schema);
  void judge_one(const Expected& message, const pg::Rows& rows, int row, WallTime settled, Side& side,
                 std::vector<Finding>& found) const;

  std::unique_ptr<pg::Session> view_;
  std::unique_ptr<pg::Session> now_;
  std::string name_;
  std::string schema_;  // quoted
  std::optional<WallTime> registered_at_{};
  std::vector<std::string> topics_{};
  std::optional<Cursor<ProcessedRow>> processed_{};
};

}  // namespace outbox::commands
