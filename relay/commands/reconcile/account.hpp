#pragma once
// What `outboxd reconcile` found out: discrepancies one by one, and how much is right, explained, or cannot
// be known. Plain values and how they are written. Thread: any.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace outbox::commands {

enum class Wrong {
  missing,      ///< it should be there and is not
  repeated,     ///< a record stands twice, and no replay explains it
  conflicting,  ///< both are there and say different things
  orphan,       ///< it is there, and nothing says that it should be
};
inline constexpr std::array all_wrongs{Wrong::missing, Wrong::repeated, Wrong::conflicting, Wrong::orphan};

struct Finding {
  Wrong wrong = Wrong::missing;
  std::string where{};  ///< "kafka", or the consumer's name
  std::int64_t id = 0;  ///< the row's; 0: no row is known
  std::string msg_id{};
  std::string topic{};
  std::int32_t partition = -1;
  std::int64_t offset = -1;
  std::string detail{};
};

enum class Unknown {
  record_expired,
  record_compacted,
  record_hidden,
  topic_gone,
  row_gone,
  forgotten,
  before_consumer,
  topic_not_read,
};
inline constexpr std::array all_unknowns{
    Unknown::record_expired, Unknown::record_compacted, Unknown::record_hidden,   Unknown::topic_gone,
    Unknown::row_gone,       Unknown::forgotten,        Unknown::before_consumer, Unknown::topic_not_read};

/// Of one side that the outbox is compared with: Kafka, or a consumer.
struct Side {
  std::string name{};
  std::map<Wrong, std::int64_t> wrong{};
  std::map<Unknown, std::int64_t> unknown{};
  /// What is as it should be or explained, by its name: "verified", "applied", "replayed", …
  std::map<std::string, std::int64_t> counted{};
};

struct Account {
  std::map<std::string, std::int64_t> rows{};  ///< by status, in the times and topics that were asked for
  Side kafka{.name = "kafka"};
  std::vector<Side> consumers{};
  bool rows_are_deleted = false;  ///< after_sent: delete

  [[nodiscard]] std::int64_t wrong(Wrong kind) const;
  [[nodiscard]] std::int64_t unknown() const;
};

[[nodiscard]] std::string_view to_string(Wrong wrong);
[[nodiscard]] std::string_view to_string(Unknown unknown);  ///< "record_expired"
[[nodiscard]] std::string_view meaning(Unknown unknown);    ///< for people

/// One line each, with a line end; what comes from outside is escaped.
[[nodiscard]] std::string finding_text(const std::string& pipeline, const Finding& finding);
[[nodiscard]] std::string finding_json(const std::string& pipeline, const Finding& finding);
/// A table for people; one JSON object.
[[nodiscard]] std::string account_text(const std::string& pipeline, const Account& account);
[[nodiscard]] std::string account_json(const std::string& pipeline, const Account& account);

}  // namespace outbox::commands
