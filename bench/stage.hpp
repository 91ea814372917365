#pragma once
// The servers of a run and their databases: a PostgreSQL set as for production and one real Kafka broker,
// both gone with this object, or those that the options name. Blocks; throws std::runtime_error.

#include <memory>
#include <string>

#include "bench/options.hpp"
#include "pg/session.hpp"
#include "tests/support/kafka.hpp"
#include "tests/support/postgres.hpp"

namespace bench {

inline constexpr int partitions = 6;
inline constexpr int keys = 1'000;

class Stage {
 public:
  explicit Stage(const Options& options);

  // Databases are named outbox_bench_NAME on the server; one that an earlier run left behind is replaced.

  /// A fresh database with the outbox in it, as `outboxd migrate` and the grants make it.
  void make_database(const std::string& name);
  /// A copy of it, file by file: each measurement starts from the same pages. Nobody may be connected to
  /// `from`.
  void copy_database(const std::string& from, const std::string& name);
  void drop_database(const std::string& name);

  [[nodiscard]] std::string uri(const std::string& database, const std::string& user = "") const;
  /// As a superuser.
  [[nodiscard]] const std::string& postgres_uri() const { return postgres_uri_; }
  [[nodiscard]] outbox::pg::Session session(const std::string& database) const;
  [[nodiscard]] outbox::test::KafkaCluster& kafka() { return *kafka_; }
  [[nodiscard]] std::string postgres_version() const;

 private:
  [[nodiscard]] outbox::pg::Session server() const;

  std::unique_ptr<outbox::test::PostgresServer> postgres_;
  std::string postgres_uri_;
  std::unique_ptr<outbox::test::KafkaCluster> kafka_;
};

/// `rows` waiting rows for `topic`: json bodies of 300 bytes, 1,000 keys.
void load_backlog(outbox::pg::Session& session, const std::string& topic, int rows);
/// Such a body; `number` stands where number_in() finds it.
[[nodiscard]] std::string body_of(long long number);
[[nodiscard]] long long number_in(std::string_view body);
/// Runs a statement whose parameters are only numbers and short names of our own.
long long number_of(outbox::pg::Session& session, const std::string& sql);

}  // namespace bench
