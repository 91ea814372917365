#pragma once
// Kafka's rules of access (ACLs) to topics, as far as they say who may write or read one. Pure.
//
// Source: Kafka's documentation, Security, Authorization and ACLs: a rule that denies wins; super users need
// none, and no rule tells who they are; ALL includes WRITE and READ.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace outbox::relay {

enum class AccessPattern { literal, prefixed };
enum class AccessEffect { allow, deny };
enum class AccessOperation { write, read, all };

/// A rule about writing or reading topics.
struct AccessRule {
  std::string pattern{};  ///< a topic, or `*` where literal; the beginning of topics where prefixed
  AccessPattern kind = AccessPattern::literal;
  std::string principal{};  ///< "User:outbox" or "User:*"
  AccessEffect effect = AccessEffect::allow;
  AccessOperation operation = AccessOperation::write;
  bool any_host = true;  ///< it is for clients of every address
};

enum class Access { allowed, denied, no_rule };

/// A denial for some addresses only is none here: it cannot be known whether it meets this machine.
[[nodiscard]] Access access_to(const std::vector<AccessRule>& rules, AccessOperation wanted,
                               std::string_view principal, std::string_view topic);

/// Whom a broker takes a client with these properties of librdkafka for, where that follows from them: by a
/// password the user, without login and certificate "User:ANONYMOUS". nullopt: the broker's own rules decide
/// (certificates, Kerberos, OAuth).
[[nodiscard]] std::optional<std::string> principal_of(const std::map<std::string, std::string>& properties);

}  // namespace outbox::relay
