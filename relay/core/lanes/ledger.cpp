#include "relay/core/lanes/ledger.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "relay/core/message/topic_name.hpp"

namespace outbox::relay {
namespace {

constexpr char version = 2;
constexpr char version_without_msg_ids = 1;
constexpr std::size_t row_bytes_min = 4 + sizeof(Uuid::bytes);  // four varints and the msg_id

void put(std::string& out, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) out.push_back(static_cast<char>(number | 0x80));
  out.push_back(static_cast<char>(number));
}

// Small numbers of either sign stay short.
void put_signed(std::string& out, std::uint64_t difference) {
  put(out, (difference << 1) ^ (difference >> 63 ? ~std::uint64_t{0} : 0));
}

class Reader {
 public:
  explicit Reader(std::string_view left) : left_(left) {}

  std::uint64_t number() {
    std::uint64_t out = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<std::uint8_t>(left_.front());
      left_.remove_prefix(1);
      out |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return out;
    }
    sound_ = false;
    return 0;
  }
  std::uint64_t signed_number() {
    const std::uint64_t zigzag = number();
    return (zigzag >> 1) ^ (zigzag & 1 ? ~std::uint64_t{0} : 0);
  }
  // Within 0..max.
  template <class T>
  T bounded(std::uint64_t number) {
    if (number > static_cast<std::uint64_t>(std::numeric_limits<T>::max())) sound_ = false;
    return sound_ ? static_cast<T>(number) : T{};
  }
  std::string_view bytes(std::size_t count) {
    if (left_.size() < count) {
      sound_ = false;
      return {};
    }
    const auto out = left_.substr(0, count);
    left_.remove_prefix(count);
    return out;
  }
  Uuid uuid() {
    Uuid out;
    std::ranges::copy(bytes(out.bytes.size()), out.bytes.begin());
    return out;
  }
  [[nodiscard]] bool sound() const { return sound_; }
  [[nodiscard]] std::size_t left() const { return left_.size(); }

 private:
  std::string_view left_;
  bool sound_ = true;
};

void put_uuid(std::string& out, const Uuid& id) {
  out.append(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
}

}  // namespace

std::string ledger_key(LedgerLane ledger_lane) {
  return std::to_string(ledger_lane.generation) + "/" + std::to_string(ledger_lane.lane.value);
}

std::string transactional_id(std::string_view pipeline, const Uuid& ledger, LedgerLane ledger_lane) {
  return "outboxd-" + std::string{pipeline} + "-" + to_string(ledger) + "-" +
         std::to_string(ledger_lane.generation) + "-" + std::to_string(ledger_lane.lane.value);
}

std::string ledger_topic_of(std::string_view pipeline) {
  return std::string{ledger_topic_prefix} + std::string{pipeline};
}

std::string encode_ledger_entry(const LedgerEntry& entry) {
  std::string out(1, version);
  out.reserve(32 + entry.rows.size() * 24);
  put_uuid(out, entry.ledger);
  put(out, static_cast<std::uint64_t>(entry.ledger_lane.generation));
  put(out, static_cast<std::uint64_t>(entry.ledger_lane.lane.value));
  put(out, entry.rows.size());
  std::uint64_t id = 0;
  std::uint64_t partition = 0;
  std::uint64_t offset = 0;
  for (const LedgerRow& row : entry.rows) {
    put_signed(out, static_cast<std::uint64_t>(row.id.value) - id);
    put_signed(out, static_cast<std::uint64_t>(row.partition.value) - partition);
    put_signed(out, static_cast<std::uint64_t>(row.offset.value) - offset);
    put(out, static_cast<std::uint64_t>(row.generation));
    put_uuid(out, row.msg_id);
    id = static_cast<std::uint64_t>(row.id.value);
    partition = static_cast<std::uint64_t>(row.partition.value);
    offset = static_cast<std::uint64_t>(row.offset.value);
  }
  return out;
}

Result<LedgerEntry> decode_ledger_entry(std::string_view value) {
  const auto unreadable = [](const std::string& why) {
    return failure(Disposition::fatal, "a record of the ledger cannot be read: " + why, "",
                   "nothing is sent until it can: use the outboxd that wrote it, or a later one");
  };
  Reader in(value);
  const std::string_view first = in.bytes(1);
  if (!in.sound()) return unreadable("it is empty");
  if (first.front() == version_without_msg_ids)
    return failure(
        Disposition::fatal,
        "a record of the ledger is of version 1, which names rows by ids alone: after a restore they "
        "are other rows'",
        "",
        "have the outboxd that wrote it mark what it names: start it once more, stop it when nothing is "
        "PENDING, and delete the ledger's topic");
  if (first.front() != version)
    return unreadable("its version is " + std::to_string(static_cast<unsigned char>(first.front())));
  LedgerEntry entry;
  entry.ledger = in.uuid();
  entry.ledger_lane.generation = in.bounded<std::int32_t>(in.number());
  entry.ledger_lane.lane = LaneId{in.bounded<std::int16_t>(in.number())};
  const std::uint64_t count = in.number();
  if (!in.sound() || count > in.left() / row_bytes_min) return unreadable("it is cut short");
  entry.rows.reserve(count);
  std::uint64_t id = 0;
  std::uint64_t partition = 0;
  std::uint64_t offset = 0;
  for (std::uint64_t i = 0; i < count && in.sound(); ++i) {
    id += in.signed_number();
    partition += in.signed_number();
    offset += in.signed_number();
    const auto generation = in.bounded<std::int32_t>(in.number());
    entry.rows.push_back({RowId{in.bounded<std::int64_t>(id)}, in.uuid(), generation,
                          Partition{in.bounded<std::int32_t>(partition)},
                          Offset{in.bounded<std::int64_t>(offset)}});
  }
  if (!in.sound()) return unreadable("it is cut short, or has a number that no row has");
  if (in.left() > 0) return unreadable("it is longer than it says");
  return entry;
}

}  // namespace outbox::relay
