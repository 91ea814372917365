#pragma once
// The outbox as an auditor reads it: what it says was sent, of one moment and in the order of the records,
// and single rows as they are now. Two connections, read only. Blocks; one thread.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "base/uuid.hpp"
#include "pg/identifier.hpp"
#include "relay/commands/reconcile/cursor.hpp"
#include "relay/core/message/topic_map.hpp"

namespace outbox::commands {

struct SentRow {
  std::int64_t id = 0;
  Uuid msg_id{};
  std::string topic{};
  std::optional<std::string> key{};
  std::int32_t partition = -1;  ///< -1: the row names none
  std::int64_t offset = -1;
  std::int32_t generation = 0;
  std::optional<Sha256> body{};  ///< nullopt: a tombstone
  WallTime sent_at{};
};

/// Which rows; what is not set is not asked for.
struct RowFilter {
  std::vector<std::string> topics{};
  std::optional<std::string> since{};  ///< of created_at; as PostgreSQL reads a timestamptz
  std::optional<std::string> until{};
};

struct RowSpan {
  WallTime since{};
  WallTime until{};
  WallTime now{};    ///< by the database's clock, when the view was opened
  WallTime floor{};  ///< rows created before may have been dropped with their day, or purged
};

struct RowState {
  Uuid msg_id{};
  std::string status{};
  std::int32_t generation = 0;
  std::int32_t partition = -1;
  std::int64_t offset = -1;
};

class OutboxSide {
 public:
  /// Errors: as pg::Session; fatal: no such table; 22xxx where a time can't be read.
  /// `in_kafka`: what Kafka calls the topics; by those names everything here goes but the filter.
  [[nodiscard]] static Result<OutboxSide> open(const std::string& uri, const pg::TableName& table,
                                               const RowFilter& filter, const relay::TopicMap& in_kafka);

  [[nodiscard]] const RowSpan& span() const { return span_; }
  /// That messages of this outbox went to and the filter meets, in the order of their bytes.
  [[nodiscard]] const std::vector<std::string>& topics() const { return topics_; }
  /// Rows that the filter meets, by status. Reads all of them.
  [[nodiscard]] Result<std::map<std::string, std::int64_t>> counts();
  /// By (topic, partition, offset, id).
  [[nodiscard]] Cursor<SentRow>& sent() { return *sent_; }
  /// As they are now, in the order of `ids`; nullopt: there is no such row.
  [[nodiscard]] Result<std::vector<std::optional<RowState>>> look_up(std::span<const std::int64_t> ids,
                                                                     std::span<const WallTime> created_at);

 private:
  OutboxSide(pg::Session view, pg::Session now, const pg::TableName& table);
  [[nodiscard]] Status begin(const RowFilter& filter, const relay::TopicMap& in_kafka);

  std::unique_ptr<pg::Session> view_;
  std::unique_ptr<pg::Session> now_;
  pg::TableName table_;
  RowFilter filter_{};
  RowSpan span_{};
  std::vector<std::string> topics_{};
  std::optional<Cursor<SentRow>> sent_{};
};

/// `now` in a transaction of its own in which each id is one probe.
[[nodiscard]] Result<pg::Rows> probe(pg::Session& session, const std::string& sql, const pg::Params& params);
/// Opens a view of one moment, for a cursor.
[[nodiscard]] Status open_view(pg::Session& session);
[[nodiscard]] Result<pg::Rows> fetch(pg::Session& session);
[[nodiscard]] std::optional<Sha256> hash_of(const pg::Rows& rows, int row, int column);
void add_texts(pg::Params& params, const std::vector<std::string>& texts);

}  // namespace outbox::commands
