#pragma once
// What an operator has decided, as plain values. Made by load() (relay/config/load.hpp), which has checked
// every bound; what each value means, its default and its bounds stand once, in the option table
// (relay/config/options.cpp). Lifecycle: read at start, then constant. Thread: any.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "relay/core/types.hpp"

namespace outbox::config {

// The order of each enum's values is the order of its choices in the option table.
enum class Mode { poll, notify };
enum class Prepared { named, unnamed };
enum class CreateTopics { off, on };
enum class Delivery { at_least_once, exactly_once };
enum class LogLevel { debug, info, warn, error };
enum class LogFormat { text, json };

struct Postgres {
  std::string uri;  ///< secret: may hold a password
  std::int32_t connections = 0;
  Millis statement_deadline{};
  Prepared prepared{};
  friend bool operator==(const Postgres&, const Postgres&) = default;
};

struct Source {
  Mode mode{};
  std::string table;             ///< as written; pg::parse_table_name reads it
  std::string partition_column;  ///< as written; pg::parse_name reads it; empty: none
  Millis poll_interval{};
  std::int16_t lanes = 0;
  std::int32_t batch_rows = 0;
  std::int64_t batch_bytes = 0;
  relay::AfterSent after_sent{};
  relay::OnDead on_dead{};
  friend bool operator==(const Source&, const Source&) = default;
};

struct Publish {
  relay::HeaderPreset headers{};
  relay::Tracestate tracestate{};
  std::int64_t in_flight_bytes = 0;
  std::int32_t in_flight_rows = 0;
  std::int32_t max_attempts = 0;  ///< 0: no limit
  std::string partition_header;   ///< empty: none
  friend bool operator==(const Publish&, const Publish&) = default;
};

struct Ledger {
  std::string topic;  ///< empty: made of the pipeline's name, relay::ledger_topic_of()
  friend bool operator==(const Ledger&, const Ledger&) = default;
};

struct Topics {
  std::string allow;
  std::string prefix;
  std::string rewrite;
  CreateTopics create{};
  std::int32_t create_partitions = 0;
  std::int32_t create_replication = 0;
  std::string create_configs;  ///< "name=value, …"
  friend bool operator==(const Topics&, const Topics&) = default;
};

struct Lease {
  Millis ttl{};
  friend bool operator==(const Lease&, const Lease&) = default;
};

struct Retention {
  relay::OldRows old_rows{};
  Millis replay_window{};
  std::int32_t partitions_ahead = 0;
  Millis every{};
  friend bool operator==(const Retention&, const Retention&) = default;
};

/// One outbox table and the Kafka cluster it goes to.
struct Pipeline {
  std::string name;  ///< unique in the file
  Postgres postgres;
  Source source;
  Delivery delivery{};
  Ledger ledger;
  Publish publish;
  Topics topics;
  Lease lease;
  Retention retention;
  std::map<std::string, std::string>
      kafka;  ///< librdkafka properties as written; none that breaks the promise
  friend bool operator==(const Pipeline&, const Pipeline&) = default;
};

struct Log {
  LogLevel level{};
  LogFormat format{};
  Millis summary_interval{};
  friend bool operator==(const Log&, const Log&) = default;
};

struct Shutdown {
  Millis timeout{};
  friend bool operator==(const Shutdown&, const Shutdown&) = default;
};

struct Admin {
  std::string listen;  ///< as written; relay::parse_listen_address reads it
  std::int32_t topics_max = 0;
  Millis survey_interval{};
  friend bool operator==(const Admin&, const Admin&) = default;
};

/// One process.
struct Config {
  std::string instance;  ///< empty: HOST:PID-RANDOM, made at start
  Log log;
  Shutdown shutdown;
  Admin admin;
  std::vector<Pipeline> pipelines;  ///< at least one
  friend bool operator==(const Config&, const Config&) = default;
};

}  // namespace outbox::config
