#pragma once
// A downstream service's database for tests: migrated, with a table that shows each effect.

#include <string>
#include <vector>

#include "outbox/inbox.hpp"
#include "relay/commands/migrate/migrate.hpp"
#include "tests/support/postgres.hpp"

namespace outbox::test {

struct ServiceDatabase {
  explicit ServiceDatabase(const relay::MigrateOptions& options = {}, std::string server = shared_postgres())
      : database(std::move(server)), session(database.session()) {
    must(relay::migrate(session, options));
    must(
        session.exec("CREATE TABLE effect (msg text, topic text, part int, off bigint, seq bigint GENERATED "
                     "ALWAYS AS IDENTITY)"));
  }

  [[nodiscard]] InboxOptions inbox(const std::string& name = "ledger") const {
    return {.name = name, .postgres = database.uri()};
  }
  /// The first column of the first row, as a number.
  [[nodiscard]] std::int64_t number(const std::string& sql) { return must(session.exec(sql)).integer(0, 0); }
  [[nodiscard]] std::string text(const std::string& sql) {
    return std::string(must(session.exec(sql)).text(0, 0));
  }
  [[nodiscard]] std::int64_t effects() { return number("SELECT count(*) FROM effect"); }
  [[nodiscard]] std::int64_t dead() { return number("SELECT count(*) FROM dead_msgs"); }

  TestDatabase database;
  pg::Session session;
};

/// What a real handler does: a write that shows how often it took effect.
inline void record_effect(Transaction& tx, const Message& message) {
  static_cast<void>(tx.exec("INSERT INTO effect VALUES ($1, $2, $3, $4)", message.msg_id(), message.topic(),
                            message.partition(), message.offset()));
}

inline std::vector<Fate> fates(const std::vector<Outcome>& outcomes) {
  std::vector<Fate> out;
  out.reserve(outcomes.size());
  for (const auto& outcome : outcomes) out.push_back(outcome.fate);
  return out;
}

}  // namespace outbox::test
