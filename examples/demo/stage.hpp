#pragma once
// Everything that the demo starts: a throwaway PostgreSQL with the two services' databases, a Kafka, the
// payment core, outboxd and the ledger. All of it is gone with this object.

#include <memory>
#include <string>

#include "examples/demo/group_lag.hpp"
#include "examples/demo/options.hpp"
#include "examples/demo/program.hpp"
#include "pg/session.hpp"
#include "tests/support/kafka.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/temporary_directory.hpp"

namespace demo {

class Stage {
 public:
  /// Blocks until the servers are up and the tables made; the programs are not started yet.
  explicit Stage(const DemoOptions& options);

  Program& core() { return *core_; }
  Program& relay() { return *relay_; }
  Program& ledger() { return *ledger_; }

  /// A superuser's session in the core's database, and in the ledger's.
  [[nodiscard]] outbox::pg::Session bank_session() const;
  [[nodiscard]] outbox::pg::Session ledger_session() const;
  /// Records that the ledger has not committed yet, copies among them.
  [[nodiscard]] std::int64_t ledger_lag() { return lag_->records(); }
  /// Every record of the topic, in the order of each partition.
  [[nodiscard]] std::vector<outbox::test::KafkaRecord> records();

  [[nodiscard]] const std::string& kafka_said() const { return kafka_said_; }

 private:
  void start_kafka(const DemoOptions& options);
  void make_databases(const DemoOptions& options);
  void write_config() const;
  void prepare_programs(const DemoOptions& options);

  outbox::test::TemporaryDirectory folder_{"outbox-demo"};
  outbox::test::PostgresServer postgres_;
  std::unique_ptr<Program> mock_kafka_;
  std::unique_ptr<outbox::test::KafkaCluster> kafka_;
  std::unique_ptr<GroupLag> lag_;
  std::string kafka_said_;
  std::string topic_ = outbox::test::KafkaCluster::unique_topic("transfers");
  std::unique_ptr<Program> core_;
  std::unique_ptr<Program> relay_;
  std::unique_ptr<Program> ledger_;
};

}  // namespace demo
