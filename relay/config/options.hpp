#pragma once
// The one table of options. Parsing, checking, `config show`, docs/configuration.md and config/outboxd.yaml
// all walk it: an option is added by one row here and one member in config.hpp.

#include <span>
#include <string_view>

#include "options/option.hpp"
#include "relay/config/config.hpp"

namespace outbox::config {

/// Of the process: the top level of the file.
[[nodiscard]] std::span<const Option<Config>> process_options();
/// Of each entry under `pipelines`.
[[nodiscard]] std::span<const Option<Pipeline>> pipeline_options();

/// The mapping whose keys are librdkafka's, and the one of them that must be there.
inline constexpr std::string_view kafka_section = "kafka";
inline constexpr std::string_view kafka_servers = "bootstrap.servers";
inline constexpr std::string_view kafka_servers_example = "127.0.0.1:9092";
inline constexpr std::string_view kafka_doc =
    "Any property of librdkafka's producer, written as librdkafka spells it. bootstrap.servers is required. "
    "Those that would break the promise are refused with the reason. Logins, passwords and certificates, "
    "also "
    "renewed files under the same name, are taken over when the file is read again.";
inline constexpr std::string_view pipelines_section = "pipelines";
inline constexpr std::size_t pipelines_max = 64;

}  // namespace outbox::config
