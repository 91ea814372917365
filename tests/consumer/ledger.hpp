#pragma once
// The small service ledger_consumer, its database and topic, and the money invariant over what it left.

#include <string>
#include <vector>

#include "kafka_letters.hpp"
#include "service_database.hpp"
#include "tests/support/kafka.hpp"
#include "tests/support/process.hpp"

namespace outbox::test {

struct Ledger {
  explicit Ledger(int count, int accounts_each = 1)
      : partitions(count),
        accounts(count * accounts_each),
        topic(KafkaCluster::shared().new_topic("transfers", count)) {}

  /// `more`: further options of ledger_consumer.
  [[nodiscard]] ProcessOptions options(const std::string& commit_interval_ms,
                                       const std::vector<std::string>& more = {}) const {
    ProcessOptions out{.args = {"--postgres", db.database.uri(), "--kafka", kafka, "--topic", topic, "--name",
                                topic, "--commit-interval-ms", commit_interval_ms, "--batch-rows", "20",
                                "--horizon", KafkaCluster::shared().real() ? "checked" : "unchecked"}};
    out.args.insert(out.args.end(), more.begin(), more.end());
    return out;
  }
  /// A static member of the group: after a kill it has its partitions back at once.
  [[nodiscard]] ProcessOptions as_member(const std::string& member, const std::string& crash_at = "") const {
    auto out = options("20", {"--kafka-property", "group.instance.id=" + member});
    if (!crash_at.empty()) out.env["OUTBOX_CRASH_AT"] = crash_at;
    return out;
  }
  void send(int first, int count) const {
    std::vector<Letter> letters;
    for (int i = first; i < first + count; ++i) {
      const std::string account = "a" + std::to_string(i % accounts);
      letters.push_back(letter(
          v7(i), R"({"transfer":")" + std::to_string(i) + R"(","account":")" + account + R"(","amount":1})"));
      letters.back().partition = i % partitions;
      letters.back().key = account;
    }
    test::send(kafka, topic, letters);
  }
  std::int64_t entries() {
    const auto there = db.text("SELECT coalesce(to_regclass('ledger_account')::text, '')");
    return there.empty() ? 0 : db.number("SELECT count(*) FROM ledger_entry");
  }
  /// Nothing lost, nothing twice, and in order: 1 cent for each of `count` transfers.
  [[nodiscard]] bool money_is_right(int count) {
    return db.number("SELECT count(DISTINCT transfer) FROM ledger_entry") == count && entries() == count &&
           db.number("SELECT sum(balance)::bigint FROM ledger_account") == count &&
           db.number(
               "SELECT count(*) FROM (SELECT transfer::int < lag(transfer::int) OVER (PARTITION BY account "
               "ORDER"
               " BY seq) AS back FROM ledger_entry) o WHERE back") == 0;
  }

  std::string kafka = KafkaCluster::shared().bootstrap();
  int partitions;
  int accounts;  ///< each has all its transfers in one partition
  std::string topic;
  ServiceDatabase db;
};

}  // namespace outbox::test
