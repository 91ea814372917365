#include "relay/core/claim/blocklist.hpp"

namespace outbox::relay {

void Blocklist::recorded(const HoldTarget& target, ClaimSerial newest_open) {
  if (const auto at = entries_.find(target); at != entries_.end()) at->second = newest_open;
}

void Blocklist::forget(ClaimSerial oldest_open) {
  std::erase_if(entries_, [&](const auto& entry) { return entry.second && *entry.second < oldest_open; });
}

bool Blocklist::blocks(const HoldTarget& target, ClaimSerial claim) const {
  const auto at = entries_.find(target);
  return at != entries_.end() && (!at->second || claim <= *at->second);
}

bool Blocklist::blocks(const Message& message, ClaimSerial claim) const {
  if (entries_.empty()) return false;
  const std::string topic{message.topic};
  if (blocks(HoldTarget{HoldScope::topic, topic, {}}, claim)) return true;
  return message.key && blocks(HoldTarget{HoldScope::key, topic, std::string{*message.key}}, claim);
}

}  // namespace outbox::relay
