#pragma once
// Dead messages, for `outboxd dead`: look at them, send them again, give them up. Changes go through the
// functions of sql/migrations, which keep the order of keys. Blocks on the session; any thread.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "pg/identifier.hpp"
#include "pg/session.hpp"

namespace outbox::commands {

/// Which ones; what is not set is not asked for.
struct DeadFilter {
  std::vector<std::int64_t> ids;
  std::optional<std::string> topic;
  std::optional<std::string> key;
  std::optional<std::string> reason;  ///< a part of it, whatever its case
  std::optional<std::string> since;   ///< of created_at; as PostgreSQL reads a timestamptz
  std::optional<std::string> until;
};

struct DeadMessage {
  std::int64_t id = 0;
  std::string msg_id;
  std::string topic;
  std::optional<std::string> key;
  std::string created_at;  ///< RFC 3339, UTC
  std::int64_t attempts = 0;
  std::int64_t generation = 0;
  std::int64_t body_bytes = 0;
  std::string reason;
};

struct DeadList {
  std::vector<DeadMessage> messages;  ///< by (topic, key, id)
  std::int64_t total = 0;             ///< that the filter meets, also beyond the limit
};

struct DeadDetail {
  DeadMessage message;
  std::string headers;  ///< JSON
  std::optional<std::string> body;
  std::int64_t held_behind = 0;           ///< later rows of its key that wait
  std::optional<std::string> held_since;  ///< RFC 3339; nullopt: its key is not on hold
};

enum class Body { leave_out, show };
inline constexpr int body_shown_max = 64 << 10;  ///< characters

/// Errors: as pg::Session; 22xxx where a time can't be read; 42P01 where the table is missing. Source:
/// sql/queries/dead_*.sql
[[nodiscard]] Result<DeadList> list_dead(pg::Session& session, const pg::TableName& table,
                                         const DeadFilter& filter, int rows_max);
/// nullopt: there is no dead message of that id.
[[nodiscard]] Result<std::optional<DeadDetail>> show_dead(pg::Session& session, const pg::TableName& table,
                                                          std::int64_t id, Body body);

/// Shape: PENDING again with a higher generation, a few hundred in a transaction, in the order given; how
/// many were dead still. Those of earlier transactions stay done when a later one fails.
[[nodiscard]] Result<std::int64_t> retry_dead(pg::Session& session, const pg::TableName& table,
                                              std::span<const DeadMessage> messages);
/// Likewise DISCARDED; `why` stays in last_error, behind the database role that did it.
[[nodiscard]] Result<std::int64_t> discard_dead(pg::Session& session, const pg::TableName& table,
                                                std::span<const DeadMessage> messages,
                                                const std::string& why);

/// For people; what comes from the database is escaped. `name` is the pipeline's.
[[nodiscard]] std::string dead_text(const std::string& name, const DeadList& list);
[[nodiscard]] std::string dead_text(const DeadDetail& detail);
/// One JSON object a message, each with a line end.
[[nodiscard]] std::string dead_json(const std::string& name, const DeadList& list);
[[nodiscard]] std::string dead_json(const std::string& name, const DeadDetail& detail);

}  // namespace outbox::commands
