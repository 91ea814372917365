#include "pg/identifier.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace outbox::pg {
namespace {

constexpr std::size_t name_bytes_max = 63;  // NAMEDATALEN - 1: PostgreSQL would cut a longer one in silence

bool letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool letter_digit_or_dollar(char c) {
  return letter(c) || (c >= '0' && c <= '9') || c == '$';
}
// Only ASCII, as PostgreSQL does in a multi-byte encoding.
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string in_quotes(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) out.append(c == '"' ? 2 : 1, c);
  return out += '"';
}

Status check_name(std::string_view name) {
  if (name.empty()) return failure(Disposition::fatal, "a name in SQL is empty");
  if (name.find('\0') != std::string_view::npos)
    return failure(Disposition::fatal, "a name in SQL contains NUL");
  if (name.size() > name_bytes_max) {
    return failure(Disposition::fatal, "the name " + in_quotes(name) + " is longer than 63 bytes");
  }
  return {};
}

Result<std::string> take_quoted(std::string_view& rest) {
  std::string name;
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] != '"') {
      name += rest[i];
    } else if (i + 1 < rest.size() && rest[i + 1] == '"') {
      name += rest[i++];
    } else {
      rest.remove_prefix(i + 1);
      return name;
    }
  }
  return failure(Disposition::fatal, "a double quote is not closed");
}

std::string take_plain(std::string_view& rest) {
  std::string name;
  while (!rest.empty() && (name.empty() ? letter(rest[0]) : letter_digit_or_dollar(rest[0]))) {
    name += lower(rest[0]);
    rest.remove_prefix(1);
  }
  return name;
}

Result<std::string> take_name(std::string_view& rest) {
  Result<std::string> name = rest.starts_with('"') ? take_quoted(rest) : take_plain(rest);
  if (!name) return name;
  if (!rest.empty() && rest[0] != '.') {
    return failure(Disposition::fatal, std::string("unexpected '") + rest[0] + "'", {},
                   "put a name with other characters than letters, digits, _ and $ in double quotes");
  }
  if (const Status good = check_name(*name); !good) return failure(good.error());
  return name;
}

Result<TableName> parse_parts(std::string_view rest) {
  auto first = take_name(rest);
  if (!first) return failure(std::move(first.error()));
  if (rest.empty()) return TableName{"public", std::move(*first)};
  rest.remove_prefix(1);
  auto second = take_name(rest);
  if (!second) return failure(std::move(second.error()));
  if (!rest.empty()) return failure(Disposition::fatal, "more than two parts");
  return TableName{std::move(*first), std::move(*second)};
}

std::string checked_quotes(std::string_view name) {
  const auto quoted = quote_identifier(name);
  OUTBOX_CHECK(quoted.has_value(), "a TableName holds names that PostgreSQL can have");
  return *quoted;
}

}  // namespace

Result<std::string> quote_identifier(std::string_view name) {
  if (const Status good = check_name(name); !good) return failure(good.error());
  return in_quotes(name);
}

std::string TableName::quoted() const {
  return quoted_schema() + "." + checked_quotes(table);
}
std::string TableName::quoted_schema() const {
  return checked_quotes(schema);
}

Result<TableName> parse_table_name(std::string_view text) {
  auto name = parse_parts(text);
  if (!name) name.error().message = "table name '" + std::string(text) + "': " + name.error().message;
  return name;
}

Result<std::string> parse_name(std::string_view text) {
  std::string_view rest = text;
  auto name = take_name(rest);
  if (name && !rest.empty()) name = failure(Disposition::fatal, "more than one part");
  if (!name) name.error().message = "name '" + std::string(text) + "': " + name.error().message;
  return name;
}

std::string quote_literal(std::string_view text) {
  std::string out = "E'";
  for (const char c : text) out.append(c == '\'' || c == '\\' ? 2 : 1, c);
  return out += '\'';
}

std::string fill_template(std::string_view sql, const std::map<std::string, std::string>& names) {
  std::string out;
  std::map<std::string_view, bool> used;
  while (true) {
    const std::size_t open = sql.find("{{");
    out.append(sql.substr(0, open));
    if (open == std::string_view::npos) break;
    const std::size_t close = sql.find("}}", open);
    OUTBOX_CHECK(close != std::string_view::npos, "a template closes what it opens");
    const auto value = names.find(std::string(sql.substr(open + 2, close - open - 2)));
    OUTBOX_CHECK(value != names.end(), "a template uses only names that are given");
    out.append(value->second);
    used[value->first] = true;
    sql.remove_prefix(close + 2);
  }
  OUTBOX_CHECK(used.size() == names.size(), "a template uses every name that is given");
  return out;
}

}  // namespace outbox::pg
