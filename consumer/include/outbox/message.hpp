#pragma once
// What a service gets from Kafka: a Record as it came, and the Message that its headers make of it. Both are
// views: they own nothing, and are valid for as long as the memory behind the record, which within a handler
// is the handler's call.

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "outbox/uuid.hpp"

namespace outbox {

struct Header {
  std::string_view name;
  std::optional<std::string_view> value{};
};

/// One Kafka record. Bytes are bytes: neither key nor body nor header is promised to be text.
struct Record {
  std::string_view topic{};
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::optional<std::string_view> key{};
  std::optional<std::string_view> body{};  ///< nullopt: a tombstone, which is not the same as an empty body
  std::span<const Header> headers{};
  std::int64_t epoch = 0;  ///< of Inbox::claim_partition(); 0: its offset is not kept in the database
  int attempt =
      1;  ///< the caller of an Inbox raises it each time it offers a record again whose handler failed
};

/// A record with an identity.
class Message {
 public:
  using Time = std::chrono::sys_time<std::chrono::microseconds>;

  struct Identity {
    Uuid msg_id;
    std::optional<std::int64_t> seq;
    std::optional<Time> created_at;
    std::string_view source;
  };

  Message(const Record& record, const Identity& identity) : record_(record), identity_(identity) {}

  /// What deduplication goes by, and nothing else does.
  [[nodiscard]] const Uuid& msg_id() const { return identity_.msg_id; }
  [[nodiscard]] std::string_view topic() const { return record_.topic; }
  [[nodiscard]] std::int32_t partition() const { return record_.partition; }
  [[nodiscard]] std::int64_t offset() const { return record_.offset; }
  [[nodiscard]] std::optional<std::string_view> key() const { return record_.key; }
  [[nodiscard]] std::optional<std::string_view> body() const { return record_.body; }
  [[nodiscard]] std::span<const Header> headers() const { return record_.headers; }
  /// The last header of that name; nullopt where there is none or its value is null.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;

  /// The row's number in the sender's outbox table, where the sender says it.
  [[nodiscard]] std::optional<std::int64_t> seq() const { return identity_.seq; }
  /// When the sender wrote the row, where the sender says it. Never part of the identity.
  [[nodiscard]] std::optional<Time> created_at() const { return identity_.created_at; }
  /// The pipeline or CloudEvents source that sent it; may be empty.
  [[nodiscard]] std::string_view source() const { return identity_.source; }
  /// 1 the first time the handler sees it, more after each failure of the handler. Counted in memory, not
  /// across restarts.
  [[nodiscard]] int attempt() const { return record_.attempt; }

  [[nodiscard]] const Record& record() const { return record_; }

 private:
  Record record_;
  Identity identity_;
};

}  // namespace outbox
