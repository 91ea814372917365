#include "consumer/core/statement_kind.hpp"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>

namespace outbox {
namespace {

bool is_blank(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

/// The length of the comment that `sql` begins with; 0: none. Those of SQL nest.
std::size_t comment_size(std::string_view sql) {
  if (sql.starts_with("--")) return std::min(sql.find('\n'), sql.size());
  if (!sql.starts_with("/*")) return 0;
  int depth = 0;
  for (std::size_t i = 0; i + 1 < sql.size();) {
    const auto two = sql.substr(i, 2);
    if (two == "/*") ++depth;
    if (two == "*/") --depth;
    i += two == "/*" || two == "*/" ? std::size_t{2} : std::size_t{1};
    if (depth == 0) return i;
  }
  return sql.size();
}

/// Lower case, comments and white space as one blank between words, nothing before the first word.
std::string words_of(std::string_view sql) {
  std::string out;
  while (!sql.empty()) {
    const std::size_t comment = comment_size(sql);
    const bool gap = comment > 0 || is_blank(sql.front()) || (out.empty() && sql.front() == ';');
    if (!gap) out.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(sql.front()))));
    if (gap && !out.empty() && out.back() != ' ') out.push_back(' ');
    sql.remove_prefix(std::max<std::size_t>(comment, 1));
  }
  return out;
}

bool is_in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool begins(std::string_view words, std::initializer_list<std::string_view> with) {
  return std::ranges::any_of(with, [&](std::string_view first) {
    return words.starts_with(first) && (words.size() == first.size() || !is_in_word(words[first.size()]));
  });
}

bool contains(std::string_view words, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return words.find(part) != words.npos; });
}

}  // namespace

StatementKind kind_of(std::string_view sql) {
  const std::string words = words_of(sql);
  const bool back_to_savepoint =
      begins(words, {"rollback to", "rollback work to", "rollback transaction to"});
  if (!back_to_savepoint &&
      begins(words, {"begin", "start", "commit", "end", "abort", "rollback", "prepare transaction"}))
    return StatementKind::of_transaction;
  if ((back_to_savepoint || begins(words, {"savepoint", "release"})) && contains(words, {"outbox_"}))
    return StatementKind::of_library;
  if (begins(words, {"savepoint"})) return StatementKind::savepoint;
  const bool for_rest = begins(words, {"set local", "set constraints", "set transaction"});
  if (!for_rest &&
      begins(words, {"set", "reset", "discard", "listen", "unlisten", "prepare", "deallocate", "load"}))
    return StatementKind::of_session;
  if (contains(words, {"pg_advisory_lock", "pg_try_advisory_lock", "pg_advisory_unlock"}))
    return StatementKind::of_session;
  if (begins(words, {"declare"}) && contains(words, {" with hold"})) return StatementKind::of_session;
  const bool declares = begins(words, {"declare", "do", "call"});
  const bool makes_temporary =
      begins(words, {"create temp", "create temporary", "create local temp", "create local temporary",
                     "create global temp", "create global temporary", "create or replace temp",
                     "create or replace temporary"}) ||
      contains(words, {" into temp ", " into temporary ", "pg_temp."});
  return for_rest || declares || makes_temporary || contains(words, {"set_config"})
             ? StatementKind::for_rest_of_transaction
             : StatementKind::plain;
}

}  // namespace outbox
