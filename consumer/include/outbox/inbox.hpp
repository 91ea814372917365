#pragma once
// Exactly one effect per message, without Kafka: an Inbox judges records and runs the handler for the fresh
// ones, dedup row and handler in one transaction. Consumer is an Inbox behind a Kafka loop; a service with a
// loop of its own uses the Inbox directly and keeps two rules: offer a partition's records in order, and move
// its offset only past records whose fate is not `failed` or `waiting`.
//
// Identity is the msg_id alone, under the consumer's name. The payload's hash tells a duplicate from a
// conflict: it is the SHA-256 of the body's bytes, and 32 zero bytes for a tombstone, so that null and empty
// differ; the key, the headers and all times are left out of it.
//
// Lifecycle: constructed (no connection yet) → process() … → destroyed. Thread: one at a time, but for
// cancel().

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "outbox/handler.hpp"

namespace outbox {

struct InboxOptions {
  std::string name{};      ///< the consumer's name in processed_msgs: never change it, never share it
  std::string postgres{};  ///< libpq URI or keyword=value string of the service's own database
  std::string schema =
      "public";           ///< where processed_msgs, dead_msgs and the service's outbox are; case matters
  int attempts_max = 10;  ///< of a handler that fails for a reason of the message's; 1..1000
};

enum class Verdict {
  fresh,      ///< not seen before
  duplicate,  ///< seen before, with the same payload
  conflict,   ///< seen before, with another payload: never processed, never dropped in silence
  malformed,  ///< no identity can be read from its headers
};
[[nodiscard]] std::string_view to_string(Verdict verdict) noexcept;

enum class Fate {
  applied,  ///< fresh, and the handler's writes are committed
  skipped,  ///< a duplicate: nothing to do
  dead,     ///< in dead_msgs, committed: conflict, malformed, rejected, or attempts_max reached
  failed,   ///< its handler failed, nothing was written: offer it again, with attempt + 1, after a while
  waiting,  ///< nothing was written, and it is not its fault: offer it again as it is, after a while
};
[[nodiscard]] std::string_view to_string(Fate fate) noexcept;

struct Outcome {
  Fate fate = Fate::waiting;
  Verdict verdict = Verdict::fresh;
  std::string reason{};  ///< for people: why dead, failed or waiting
  [[nodiscard]] bool settled() const { return fate != Fate::failed && fate != Fate::waiting; }
};

class Inbox {
 public:
  /// Errors: std::invalid_argument names the option that is out of bounds.
  explicit Inbox(InboxOptions options);
  ~Inbox();
  Inbox(Inbox&&) noexcept;
  Inbox& operator=(Inbox&&) noexcept;

  /// Connects if need be, and looks whether the tables are there and may be used.
  /// Errors: SqlError, with a message that says what to do.
  void check();

  /// Shape: one outcome for each record, in order. A batch is deduplicated by one statement and committed as
  /// one transaction; where a handler fails, it is rolled back and redone in parts, so that the failure is
  /// the failing message's alone, and those behind it in its partition are `waiting`. Errors: none thrown; a
  /// database that can't be reached is `waiting`. Blocks: for as long as the handlers and the database take.
  [[nodiscard]] std::vector<Outcome> process(std::span<const Record> records, const Handler& handler);
  [[nodiscard]] Outcome process(const Record& record, const Handler& handler);

  /// Asks the database to cancel what process() waits for; its records are then `waiting`. Any thread.
  void cancel() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outbox
