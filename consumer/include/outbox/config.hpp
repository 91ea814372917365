#pragma once
// ConsumerOptions from a YAML file. A part of its own (outbox::consumer_config, which needs yaml-cpp): who
// builds the options in code needs nothing of it.
//
//   consumer:
//     name: ledger
//     postgres: postgresql:///bank
//     topics: [transfers]
//     kafka: { bootstrap.servers: "127.0.0.1:9092" }
//
// Every option, its default and its bounds: docs/consumer-configuration.md. What is a function (on_outcome,
// metrics, log, an id_of that is no JSON pointer) is set in code on what these functions answer.

#include <stdexcept>
#include <string>

#include "outbox/consumer.hpp"

namespace outbox {

/// The file can't be read, or something in it is wrong: what() has every fault of it, one a line, with its
/// place and what to do; never a secret.
class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Shape: the section `consumer` of the file; what else stands at its top level is the service's own. Values
/// may name variables (`${NAME}`), secrets may be `file:/path`. What it answers, Consumer accepts. Errors:
/// ConfigError. Thread: any.
[[nodiscard]] ConsumerOptions load_consumer_options(const std::string& file);

/// The same from text; `file` is how faults call it.
[[nodiscard]] ConsumerOptions parse_consumer_options(const std::string& yaml,
                                                     const std::string& file = "consumer.yaml");

}  // namespace outbox
