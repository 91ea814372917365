#include "relay/core/kafka/access.hpp"

#include <algorithm>
#include <cctype>

namespace outbox::relay {
namespace {

bool is_about(const AccessRule& rule, AccessOperation wanted, std::string_view principal,
              std::string_view topic) {
  if (rule.operation != wanted && rule.operation != AccessOperation::all) return false;
  if (rule.principal != principal && rule.principal != "User:*") return false;
  if (rule.kind == AccessPattern::prefixed) return topic.starts_with(rule.pattern);
  return rule.pattern == topic || rule.pattern == "*";
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string property(const std::map<std::string, std::string>& properties, const std::string& name,
                     const std::string& otherwise = "") {
  const auto at = properties.find(name);
  return at == properties.end() ? otherwise : at->second;
}

}  // namespace

Access access_to(const std::vector<AccessRule>& rules, AccessOperation wanted, std::string_view principal,
                 std::string_view topic) {
  Access out = Access::no_rule;
  for (const AccessRule& rule : rules) {
    if (!is_about(rule, wanted, principal, topic)) continue;
    if (rule.effect == AccessEffect::allow)
      out = Access::allowed;
    else if (rule.any_host)
      return Access::denied;
  }
  return out;
}

std::optional<std::string> principal_of(const std::map<std::string, std::string>& properties) {
  const std::string protocol = lower(property(properties, "security.protocol", "plaintext"));
  if (protocol.starts_with("sasl_")) {
    const std::string mechanism =
        lower(property(properties, "sasl.mechanisms", property(properties, "sasl.mechanism", "gssapi")));
    const std::string user = property(properties, "sasl.username");
    if (user.empty() || (mechanism != "plain" && !mechanism.starts_with("scram-"))) return std::nullopt;
    return "User:" + user;
  }
  for (const char* certificate : {"ssl.certificate.location", "ssl.certificate.pem", "ssl.keystore.location"})
    if (properties.contains(certificate)) return std::nullopt;
  return "User:ANONYMOUS";
}

}  // namespace outbox::relay
