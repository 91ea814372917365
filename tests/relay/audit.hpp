#pragma once
// An outbox, a topic and a consumer's memory that agree with each other, written without a relay so that a
// test can make them disagree in one place. Blocks; throws where a step fails that must not.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rig.hpp"

namespace outbox::test {

struct Written {
  std::int64_t id = 0;
  std::string msg_id{};
  std::string created_at{};  ///< as the header has it
};

struct RecordOf {
  std::string topic{};
  std::int32_t partition = 0;
  std::optional<std::string> key{};
  std::optional<std::string> body{};
  std::vector<std::pair<std::string, std::string>> headers{};
  Millis age{0};  ///< how long ago its timestamp says that it was
};

/// How the record's transaction ends; none: it is in no transaction.
enum class Ending { none, committed, aborted, open };

class Audit {
 public:
  explicit Audit(const std::string& source = "poll_interval: 100ms",
                 const KafkaCluster::Configs& topic_settings = {});
  ~Audit();
  Audit(const Audit&) = delete;
  Audit& operator=(const Audit&) = delete;

  /// A row as PENDING.
  Written write(const std::optional<std::string>& key, const std::optional<std::string>& body);
  /// The record that a relay would publish for it.
  [[nodiscard]] RecordOf record_of(const Written& row, const std::optional<std::string>& key,
                                   const std::optional<std::string>& body) const;
  /// Its offset.
  std::int64_t publish(const RecordOf& record, Ending ending = Ending::none);
  void mark(const Written& row, std::int32_t partition, std::int64_t offset);
  /// Row, record, mark, and the consumer's row.
  Written send(const std::optional<std::string>& key, const std::optional<std::string>& body);
  void process(const Written& row, std::int64_t offset, const std::optional<std::string>& body);

  std::string ask(std::string_view sql, const pg::Params& params = {}) { return rig_.ask(sql, params); }
  /// Deletes what partition 0 has before `offset`, as retention would.
  void expire(std::int64_t offset);
  [[nodiscard]] RelayRig& rig() { return rig_; }
  [[nodiscard]] const std::string& topic() const { return topic_; }

 private:
  struct Producers;
  RelayRig rig_;
  std::string topic_;
  std::unique_ptr<Producers> producers_;
};

}  // namespace outbox::test
