// The two examples of examples/transfer, as a newcomer would run them.

#include <doctest/doctest.h>

#include "kafka_letters.hpp"
#include "service_database.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace outbox;
using namespace outbox::test;

#ifdef OUTBOX_TRANSFER_CONSUMER

namespace {

/// Its own database, with the examples' table.
struct LedgerDatabase : ServiceDatabase {
  LedgerDatabase() {
    must(session.exec("CREATE TABLE account (id text PRIMARY KEY, balance bigint NOT NULL)"));
  }
  std::int64_t sum() { return number("SELECT coalesce(sum(balance), 0)::bigint FROM account"); }
  std::string balances() {
    return text("SELECT coalesce(string_agg(id || '=' || balance, ' ' ORDER BY id), '') FROM account");
  }
};

std::string settings(const std::string& uri, const std::string& kafka) {
  return "consumer:\n  name: ledger\n  postgres: \"" + uri +
         "\"\n  topics: [transfers]\n  horizon_check: unchecked\n  kafka: { bootstrap.servers: \"" + kafka +
         "\", group.id: batches }\n";
}

}  // namespace

TEST_CASE("both examples, one message at a time and set-based, keep the same ledger from the same messages") {
  KafkaCluster kafka;  // of its own: the examples consume `transfers`
  kafka.create_topic("transfers", 3, {{"retention.ms", "3600000"}, {"segment.ms", "3600000"}});
  constexpr int count = 600;
  std::vector<Letter> letters;
  for (int i = 0; i < count; ++i) {
    const int n = i % 500;  // the last hundred are copies
    letters.push_back(letter(
        v7(n), R"({"account":"a)" + std::to_string(n % 7) + R"(","cents":)" + std::to_string(n) + "}"));
    letters.back().partition = n % 3;
  }
  send(kafka.bootstrap(), "transfers", letters);

  LedgerDatabase one_by_one, in_batches;
  const TemporaryDirectory folder("examples");
  const std::string file = folder / "ledger.yaml";
  write_file(file, settings(in_batches.database.uri(), kafka.bootstrap()));
  Process single(OUTBOX_TRANSFER_CONSUMER, {.args = {one_by_one.database.uri(), kafka.bootstrap()}});
  Process batches(OUTBOX_TRANSFER_CONSUMER_BATCHES, {.args = {file}});
  constexpr int total = 500 * 499 / 2;
  eventually(
      "both ledgers are complete", [&] { return one_by_one.sum() == total && in_batches.sum() == total; },
      Millis{60'000});
  eventually("the copies were read, too", [&] {
    return committed(kafka.bootstrap(), "batches", "transfers", 0) +
               committed(kafka.bootstrap(), "batches", "transfers", 1) +
               committed(kafka.bootstrap(), "batches", "transfers", 2) ==
           count;
  });
  for (auto* process : {&single, &batches}) {
    process->kill(SIGTERM);
    INFO(process->errors());
    CHECK(process->wait(Millis{30'000}).code == 0);
  }
  CHECK(one_by_one.balances() == in_batches.balances());
  CHECK(batches.output().find("applied 500 in ") == 0);
  CHECK(batches.output().find("refused 100") != std::string::npos);
}

#endif
