#include "bench/consumer/ledger_stage.hpp"

#include <chrono>
#include <cstdio>

#include "relay/commands/migrate/migrate.hpp"

namespace bench {
namespace {

using outbox::test::must;

constexpr int accounts = 1'000;
constexpr int days = 8;  // from yesterday to a week ahead, as the migration makes them

const outbox::test::PostgresOptions server_options{
    .settings = {{"shared_buffers", "512MB"}, {"max_wal_size", "8GB"}, {"checkpoint_timeout", "30min"}}};

std::string uuid_v7(std::int64_t number) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count();
  char text[64];
  std::snprintf(text, sizeof text, "%08llx-%04llx-7%03llx-8000-%012llx",
                static_cast<unsigned long long>(ms) >> 16, static_cast<unsigned long long>(ms) & 0xffff,
                static_cast<unsigned long long>(number) & 0xfff, static_cast<unsigned long long>(number));
  return text;
}

}  // namespace

Messages::Messages(std::int64_t first, int count) {
  const auto n = static_cast<std::size_t>(count);
  for (auto* texts : {&ids_, &keys_, &bodies_}) texts->reserve(n);
  headers_.reserve(n);
  for (std::int64_t i = first; i < first + count; ++i) {
    ids_.push_back(uuid_v7(i));
    keys_.push_back("a" + std::to_string(i % accounts));
    bodies_.push_back(R"({"account":")" + keys_.back() + R"(","cents":1,"note":")" + std::string(250, 'x') +
                      "\"}");
    headers_.push_back({"outbox-id", ids_.back()});
    records_.push_back({.topic = "transfers",
                        .partition = static_cast<std::int32_t>(i % 6),
                        .offset = i,
                        .key = keys_.back(),
                        .body = bodies_.back(),
                        .headers = {&headers_.back(), 1}});
  }
}

LedgerStage::LedgerStage()
    : server_(server_options), database_(server_.uri()), session_(database_.session()) {
  must(outbox::relay::migrate(session_, {}));
  must(session_.exec_script(
      "CREATE TABLE entry (account text NOT NULL, cents bigint NOT NULL, balance bigint);"
      "CREATE TABLE account (id text PRIMARY KEY, cents bigint NOT NULL)"));
}

void LedgerStage::empty_ledger() {
  must(session_.exec_script("TRUNCATE entry, account"));
  must(session_.exec("CHECKPOINT"));
}

void LedgerStage::fill_processed(std::int64_t rows) {
  outbox::pg::Params params;
  params.i64(filled_).i64(filled_ + rows - 1).i64(days);
  must(session_.exec(
      "INSERT INTO processed_msgs (consumer, msg_id, id_time, payload_sha256, topic, partition, \"offset\") "
      "SELECT 'bench', id, outbox_id_time(id), sha256(int8send(n)), 'transfers', n % 6, n FROM ("
      "SELECT n, encode(overlay(overlay(sha256(int8send(n)) PLACING substring(int8send((extract(epoch FROM "
      "date_trunc('day', now()) + (n % $3::bigint) * interval '1 day' + (n / 100) % 80000000 * interval '1 "
      "millisecond') * 1000)::bigint) FROM 3) FROM 1 FOR 6) PLACING '\\x7000800000'::bytea FROM 7 FOR 5), "
      "'hex')"
      "::varchar(32)::uuid AS id FROM generate_series($1::bigint, $2::bigint) n) made ON CONFLICT DO NOTHING",
      params));
  filled_ += rows;
  must(session_.exec("VACUUM ANALYZE processed_msgs"));
  must(session_.exec("CHECKPOINT"));
}

std::string LedgerStage::postgres_version() {
  return std::string(must(session_.exec("SHOW server_version")).text(0, 0));
}

}  // namespace bench
