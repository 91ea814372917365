#include "bench/stage.hpp"

#include <cstdlib>

#include "relay/commands/migrate/migrate.hpp"

namespace bench {

using outbox::pg::Params;
using outbox::pg::Session;
using outbox::test::KafkaCluster;
using outbox::test::KafkaKind;
using outbox::test::must;
using outbox::test::PostgresServer;

namespace {

constexpr std::size_t body_bytes = 300;

std::string full_name(const std::string& database) {
  return "outbox_bench_" + database;
}

std::unique_ptr<PostgresServer> start_postgres() {
  return std::make_unique<PostgresServer>(
      outbox::test::PostgresOptions{.settings = {{"fsync", "on"},
                                                 {"full_page_writes", "on"},
                                                 {"shared_buffers", "512MB"},
                                                 {"max_wal_size", "8GB"},
                                                 {"checkpoint_timeout", "15min"},
                                                 {"wal_level", "replica"}}});
}

std::unique_ptr<KafkaCluster> start_kafka() {
  ::setenv("KAFKA_CLUSTER_JVM_OPTS", "", 1);  // with the optimising compiler, unlike the tests' brokers
  ::setenv("OUTBOX_REQUIRE_REAL_KAFKA", "1", 1);
  return std::make_unique<KafkaCluster>(outbox::test::KafkaOptions{
      .settings = {"log.retention.check.interval.ms=5000"}, .script_options = {"--heap", "1g"}});
}

std::unique_ptr<KafkaCluster> named_kafka(const std::string& address) {
  ::setenv("OUTBOX_TEST_KAFKA", address.c_str(), 1);
  return std::make_unique<KafkaCluster>(outbox::test::KafkaOptions{.kind = KafkaKind::external});
}

}  // namespace

Stage::Stage(const Options& options) : postgres_uri_(options.postgres) {
  if (postgres_uri_.empty()) {
    postgres_ = start_postgres();
    postgres_uri_ = postgres_->uri();
  }
  kafka_ = options.kafka.empty() ? start_kafka() : named_kafka(options.kafka);
}

void Stage::make_database(const std::string& name) {
  drop_database(name);
  must(server().exec("CREATE DATABASE " + full_name(name)));
  Session owner = session(name);
  must(outbox::relay::migrate(owner, {}));
  must(outbox::relay::apply_grants(owner, {}));
}

void Stage::copy_database(const std::string& from, const std::string& name) {
  drop_database(name);
  must(server().exec("CREATE DATABASE " + full_name(name) + " TEMPLATE " + full_name(from) +
                     " STRATEGY FILE_COPY"));
}

void Stage::drop_database(const std::string& name) {
  must(server().exec("DROP DATABASE IF EXISTS " + full_name(name) + " WITH (FORCE)"));
}

std::string Stage::uri(const std::string& database, const std::string& user) const {
  return outbox::test::with_database(postgres_uri_, full_name(database), user);
}

Session Stage::session(const std::string& database) const {
  return must(Session::connect({.uri = uri(database)}));
}

Session Stage::server() const {
  return must(Session::connect({.uri = postgres_uri_}));
}

std::string Stage::postgres_version() const {
  return std::string(must(server().exec("SHOW server_version")).text(0, 0));
}

void load_backlog(Session& session, const std::string& topic, int rows) {
  Params params;
  params.text(topic).i32(rows).i32(keys);
  must(
      session.exec("INSERT INTO public.outbox_msg (topic, msg_key, body)"
                   " SELECT $1, 'key-' || i % $3, ('{\"n\":' || lpad(i::text, 10) || ',\"pad\":\"'"
                   "        || left(repeat(md5(i::text), 9), 275) || '\"}')::json"
                   "   FROM generate_series(0, $2::int - 1) i",
                   params));
  must(session.exec("VACUUM ANALYZE public.outbox_msg"));
}

std::string body_of(long long number) {
  const std::string digits = std::to_string(number);
  std::string body = "{\"n\":" + std::string(10 - digits.size(), ' ') + digits + ",\"pad\":\"";
  body.resize(body_bytes - 2, 'x');
  return body + "\"}";
}

long long number_in(std::string_view body) {
  return std::strtoll(std::string(body.substr(5, 10)).c_str(), nullptr, 10);
}

long long number_of(Session& session, const std::string& sql) {
  return std::stoll(std::string(must(session.exec(sql)).text(0, 0)));
}

}  // namespace bench
