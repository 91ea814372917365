#pragma once
// The one table of a consumer's options. Reading the file, docs/consumer-configuration.md and
// config/consumer.yaml walk it: an option is added by one row here and one member of ConsumerOptions, whose
// default a test compares. Constant; any thread.

#include <span>
#include <string_view>

#include "options/option.hpp"
#include "outbox/consumer.hpp"

namespace outbox::config {

[[nodiscard]] std::span<const Option<ConsumerOptions>> consumer_options();

inline constexpr std::string_view consumer_section = "consumer";

/// What is no single value.
struct ListFacts {
  std::string_view key;
  std::string_view doc;
  std::string_view example;
};
inline constexpr ListFacts topics_list{"topics", "The topics to consume, as a list. Required.",
                                       "[transfers]"};
inline constexpr ListFacts id_list{"id_from_json",
                                   "JSON pointers into the body of messages whose producer sends no id: what "
                                   "stands there names the message, "
                                   "within its topic (outbox::id_from_json). Default: none.",
                                   R"(["/merchant", "/order/number"])"};
inline constexpr ListFacts kafka_map{
    "kafka",
    "Any property of librdkafka's consumer, as librdkafka spells it, TLS and SASL among them. "
    "bootstrap.servers "
    "is required. Those that would break the promise are refused with the reason.",
    R"({ bootstrap.servers: "127.0.0.1:9092" })"};

}  // namespace outbox::config
