#pragma once
// A migrated database of its own, and short ways to ask it. For tests of the laws that live in SQL. Blocks;
// throws where a statement fails that must not.

#include <string>
#include <string_view>
#include <utility>

#include "relay/commands/migrate/migrate.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/postgres.hpp"

namespace outbox::test {

class OutboxDatabase {
 public:
  /// On the shared server, or on the one whose superuser's uri is given.
  explicit OutboxDatabase(relay::MigrateOptions options = {}, const std::string& server = "")
      : database_(server.empty() ? shared_postgres() : server),
        options_(std::move(options)),
        sql_(database_.session()) {
    must(relay::migrate(sql_, options_));
  }
  /// A new session in place of a broken one.
  void reconnect() { sql_ = database_.session(); }
  /// Also makes the roles and grants.
  OutboxDatabase& with_roles() {
    must(relay::apply_grants(sql_, options_));
    return *this;
  }

  [[nodiscard]] pg::Session& sql() { return sql_; }  ///< as the superuser
  [[nodiscard]] pg::Session session(const std::string& user = "") const { return database_.session(user); }
  [[nodiscard]] pg::Session as(const std::string& role) const {
    pg::Session session = database_.session();
    must(session.exec("SET ROLE " + role));
    return session;
  }
  [[nodiscard]] std::string uri() const { return database_.uri(); }
  [[nodiscard]] std::string table() const { return options_.table.quoted(); }
  [[nodiscard]] std::string schema() const { return options_.table.quoted_schema(); }

 private:
  TestDatabase database_;
  relay::MigrateOptions options_;
  pg::Session sql_;
};

/// The values of the result, columns by '|', rows by blanks; NULL as "null".
inline std::string ask(pg::Session& session, std::string_view sql, const pg::Params& params = {}) {
  const pg::Rows rows = must(session.exec(sql, params));
  std::string out;
  for (int row = 0; row < rows.size(); ++row) {
    if (row > 0) out += ' ';
    for (int column = 0; column < rows.columns(); ++column) {
      if (column > 0) out += '|';
      out += rows.text_or_null(row, column).value_or("null");
    }
  }
  return out;
}

/// Daily partitions up to `days_ahead`, one a transaction, with patience for locks in use; how many were made.
inline int make_partitions(pg::Session& session, int days_ahead) {
  for (int made = 0;; ++made) {
    Result<pg::Rows> one = failure(Error{});
    eventually("the locks are had", [&] {
      one = session.exec("SELECT outbox_ensure_partitions($1)", pg::Params{}.i32(days_ahead));
      return one || one.error().code != "55P03";
    });
    if (must(std::move(one)).integer(0, 0) <= 0) return made;
  }
}

/// The SQLSTATE with which `sql` is refused, or "accepted".
inline std::string refusal(pg::Session& session, std::string_view sql) {
  const auto rows = session.exec(sql);
  return rows ? "accepted" : rows.error().code;
}

}  // namespace outbox::test
