#pragma once
// The one table of options. Parsing, checking, `config show`, docs/configuration.md and config/outboxd.yaml
// all walk it: an option is added by one row here and one member in config.hpp.

#include <span>
#include <string>
#include <string_view>

#include "relay/config/config.hpp"
#include "relay/config/option_value.hpp"

namespace outbox::config {

enum class Secret {
  no,
  uri,  ///< may hold a password: shown masked, may be read from a file
};
enum class Reload {
  restart,  ///< a change takes effect at the next start
  live,     ///< a change takes effect when the file is read again
};

/// What is known of an option without a Config at hand.
struct OptionFacts {
  std::string_view path{};  ///< "source.poll_interval"
  Kind kind = Kind::text;
  std::string_view fallback{};  ///< as people write it; empty and `required`: there is none
  std::string_view lowest{};    ///< bounds as people write them; of text: bytes
  std::string_view highest{};
  std::string_view choices{};  ///< "poll|notify", in the order of the enum
  bool required = false;
  Secret secret = Secret::no;
  Reload reload = Reload::restart;
  std::string_view example{};        ///< of a required one, for the sample
  std::string_view doc{};            ///< whole sentences, for docs and sample
  std::string_view fallback_said{};  ///< what the docs say where the default is no fixed text
};

/// Facts, and the way to and from its member of Target.
template <class Target>
struct Option {
  OptionFacts facts;
  void (*store)(Target&, const Value&);
  Value (*load)(const Target&);
};

/// Of the process: the top level of the file.
[[nodiscard]] std::span<const Option<Config>> process_options();
/// Of each entry under `pipelines`.
[[nodiscard]] std::span<const Option<Pipeline>> pipeline_options();

/// "2 to 8" and the like, "poll, notify", "at most 128 characters"; empty: anything.
[[nodiscard]] std::string bounds_said(const OptionFacts& facts);

/// The mapping whose keys are librdkafka's, and the one of them that must be there.
inline constexpr std::string_view kafka_section = "kafka";
inline constexpr std::string_view kafka_servers = "bootstrap.servers";
inline constexpr std::string_view kafka_servers_example = "127.0.0.1:9092";
inline constexpr std::string_view kafka_doc =
    "Any property of librdkafka's producer, written as librdkafka spells it. bootstrap.servers is required. "
    "Those that would break the promise are refused with the reason.";
inline constexpr std::string_view pipelines_section = "pipelines";
inline constexpr std::size_t pipelines_max = 64;

}  // namespace outbox::config
