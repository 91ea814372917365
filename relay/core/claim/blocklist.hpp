#pragma once
// Keys and topics that must not pass although a claim brought their rows without a hold: the hold is being
// written, or the claim's snapshot was taken before it was. Pure, one thread.
//
// A target is blocked from block() on. recorded() says that the database has the hold now: every claim that
// starts later sees it, so only the claims up to the newest one open at that moment stay blocked. Once the
// last of those has come back, forget() drops the entry. Rows already waiting when block() is called are the
// caller's to remove.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "relay/core/claim/flight.hpp"

namespace outbox::relay {

enum class HoldScope { key, topic };
struct HoldTarget {
  HoldScope scope = HoldScope::key;
  std::string topic;
  std::string key;  ///< empty where scope is topic
  friend auto operator<=>(const HoldTarget&, const HoldTarget&) = default;
};

class Blocklist {
 public:
  void block(const HoldTarget& target) { entries_[target] = std::nullopt; }
  void recorded(const HoldTarget& target, ClaimSerial newest_open);
  /// Every claim older than `oldest_open` has come back.
  void forget(ClaimSerial oldest_open);
  /// No hold came of it after all (the lane was lost): rows may pass again.
  void unblock(const HoldTarget& target) { entries_.erase(target); }

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] bool blocks(const Message& message, ClaimSerial claim) const;

 private:
  [[nodiscard]] bool blocks(const HoldTarget& target, ClaimSerial claim) const;
  std::map<HoldTarget, std::optional<ClaimSerial>> entries_;  // nullopt: not recorded yet
};

}  // namespace outbox::relay
