#include "relay/kafka/access_facts.hpp"

#include <string_view>

namespace outbox::relay {
namespace {

constexpr int event_slack_ms = 500;

std::optional<AccessOperation> operation_of(const rd_kafka_AclBinding_t* rule) {
  switch (rd_kafka_AclBinding_operation(rule)) {
    case RD_KAFKA_ACL_OPERATION_WRITE:
      return AccessOperation::write;
    case RD_KAFKA_ACL_OPERATION_READ:
      return AccessOperation::read;
    case RD_KAFKA_ACL_OPERATION_ALL:
      return AccessOperation::all;
    default:
      return std::nullopt;
  }
}

bool about_topics(const rd_kafka_AclBinding_t* rule) {
  const auto pattern = rd_kafka_AclBinding_resource_pattern_type(rule);
  return rd_kafka_AclBinding_restype(rule) == RD_KAFKA_RESOURCE_TOPIC &&
         (pattern == RD_KAFKA_RESOURCE_PATTERN_LITERAL || pattern == RD_KAFKA_RESOURCE_PATTERN_PREFIXED);
}

AccessRule rule_of(const rd_kafka_AclBinding_t* rule, AccessOperation operation) {
  const bool prefixed = rd_kafka_AclBinding_resource_pattern_type(rule) == RD_KAFKA_RESOURCE_PATTERN_PREFIXED;
  const bool denies = rd_kafka_AclBinding_permission_type(rule) == RD_KAFKA_ACL_PERMISSION_TYPE_DENY;
  return {.pattern = rd_kafka_AclBinding_name(rule),
          .kind = prefixed ? AccessPattern::prefixed : AccessPattern::literal,
          .principal = rd_kafka_AclBinding_principal(rule),
          .effect = denies ? AccessEffect::deny : AccessEffect::allow,
          .operation = operation,
          .any_host = rd_kafka_AclBinding_host(rule) == std::string_view{"*"}};
}

}  // namespace

std::optional<std::vector<AccessRule>> read_access_rules(rd_kafka_t* client, int wait_ms) {
  const KafkaAccessFilter filter{rd_kafka_AclBindingFilter_new(
      RD_KAFKA_RESOURCE_TOPIC, nullptr, RD_KAFKA_RESOURCE_PATTERN_ANY, nullptr, nullptr,
      RD_KAFKA_ACL_OPERATION_ANY, RD_KAFKA_ACL_PERMISSION_TYPE_ANY, nullptr, 0)};
  const KafkaAdminOptions options{rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_DESCRIBEACLS)};
  const KafkaQueue queue{rd_kafka_queue_new(client)};
  rd_kafka_AdminOptions_set_request_timeout(options.get(), wait_ms, nullptr, 0);
  rd_kafka_DescribeAcls(client, filter.get(), options.get(), queue.get());
  const KafkaEvent event{rd_kafka_queue_poll(queue.get(), wait_ms + event_slack_ms)};
  if (!event || rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) return std::nullopt;
  std::size_t count = 0;
  const auto** bindings =
      rd_kafka_DescribeAcls_result_acls(rd_kafka_event_DescribeAcls_result(event.get()), &count);
  if (count == 0) return std::nullopt;
  std::vector<AccessRule> out;
  for (std::size_t i = 0; i < count; ++i)
    if (const auto operation = operation_of(bindings[i]); operation && about_topics(bindings[i]))
      out.push_back(rule_of(bindings[i], *operation));
  return out;
}

}  // namespace outbox::relay
