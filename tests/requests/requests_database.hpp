#pragma once
// A database with the tables of idempotent requests, and clients that ask and finish by SQL, as any language does. For tests.

#include <string>
#include <string_view>

#include "relay/commands/migrate/migrate.hpp"
#include "tests/support/postgres.hpp"

namespace outbox::test {

inline void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

struct RequestsDatabase {
  RequestsDatabase() : session(database.session()) {
    relay::MigrateOptions options;
    options.only = {"requests"};
    must(relay::migrate(session, options));
    must(session.exec_script("CREATE TABLE effect (key text, attempt int); SET synchronous_commit = on"));
    declare("pay");
  }

  /// A class and an operation of this name.
  void declare(const std::string& name, const std::string& limit = "1 minute") {
    must(session.exec_script("SELECT request_declare_class('" + name + "', '8 days', '1 day', '1 day');" +
                             "SELECT request_declare('" + name + "', '" + name + "', '" + limit + "')"));
  }
  /// Replaces text in a function of the schema, where it must be.
  void change(const std::string& function, std::string_view from, std::string_view to) {
    std::string text(must(session.exec("SELECT pg_get_functiondef('" + function + "'::regproc)")).text(0, 0));
    if (text.find(from) == std::string::npos)
      throw std::runtime_error(function + " does not contain " + std::string(from));
    replace_all(text, from, to);
    must(session.exec_script(text));
  }
  [[nodiscard]] std::int64_t number(const std::string& sql) { return must(session.exec(sql)).integer(0, 0); }
  [[nodiscard]] std::string text(const std::string& sql) {
    return std::string(must(session.exec(sql)).text(0, 0));
  }

  TestDatabase database;
  pg::Session session;
};

inline std::string in_quotes(std::string_view text) {
  return "'" + std::string(text) + "'";
}

/// What request_begin says, as far as a test asks.
struct Begun {
  std::string verdict;
  std::string attempt;
  std::string owner;
  std::string operation_id{};
  std::string period{};
};

inline Result<Begun> begin_request(pg::Session& session, const std::string& scope, const std::string& key,
                                   const std::string& owner = "", const std::string& body = "same",
                                   const std::string& more = "") {
  const std::string who =
      owner.empty() ? std::string(must(session.exec("SELECT gen_random_uuid()::text")).text(0, 0)) : owner;
  const auto rows = session.exec(
      "SELECT verdict, coalesce(attempt, 0)::text, coalesce(operation_id::text, ''), coalesce(period::text, "
      "'') "
      "FROM request_begin(" +
      in_quotes(scope) + ", " + in_quotes(key) + ", sha256(" + in_quotes(body) + "), " + in_quotes(who) +
      more + ")");
  if (!rows) return failure(rows.error());
  return Begun{std::string(rows->text(0, 0)), std::string(rows->text(0, 1)), who,
               std::string(rows->text(0, 2)), std::string(rows->text(0, 3))};
}

/// `function`: request_succeed or request_fail.
inline Status finish_request(pg::Session& session, const std::string& function, const std::string& scope,
                             const std::string& key, const Begun& begun) {
  const auto done = session.exec("SELECT " + function + "(" + in_quotes(scope) + ", " + in_quotes(key) +
                                 ", " + begun.attempt + ", " + in_quotes(begun.owner) +
                                 ", 200, '[]', 'done', " + begun.period + ")");
  return done ? Status{} : failure(done.error());
}

inline Status retry_request(pg::Session& session, const std::string& scope, const std::string& key,
                            const Begun& begun) {
  const auto done = session.exec("SELECT request_retry(" + in_quotes(scope) + ", " + in_quotes(key) + ", " +
                                 begun.attempt + ", " + in_quotes(begun.owner) + ", 'not sent')");
  return done ? Status{} : failure(done.error());
}

/// The transaction shape: begin, one effect, succeed, COMMIT. Answers the verdict, or "error" where it was rolled back.
inline std::string pay_once(pg::Session& session, const std::string& scope, const std::string& key,
                            const std::string& body = "same") {
  std::string verdict = "error";
  const Status done = session.transaction([&](pg::Session& s) -> Status {
    const auto begun = begin_request(s, scope, key, "", body, ", 1, '{}', 'transaction'");
    if (!begun) return failure(begun.error());
    verdict = begun->verdict;
    if (verdict != "execute") return {};
    const auto effect = s.exec("INSERT INTO effect VALUES (" + in_quotes(key) + ", " + begun->attempt + ")");
    if (!effect) return failure(effect.error());
    return finish_request(s, "request_succeed", scope, key, *begun);
  });
  return done ? verdict : "error";
}

}  // namespace outbox::test
