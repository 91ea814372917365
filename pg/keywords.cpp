#include <algorithm>
#include <array>
#include <charconv>

#include "pg/libpq.hpp"

namespace outbox::pg {
namespace {

struct FreeOptions {
  void operator()(PQconninfoOption* o) const noexcept { PQconninfoFree(o); }
};
using OptionsHandle = std::unique_ptr<PQconninfoOption, FreeOptions>;

// libpq quotes what it did not understand, and that can be the password or a part of it. So its reason is
// repeated only up to where the quotation begins, and only where it is one of these.
constexpr std::array<std::string_view, 11> reasons{
    "missing \"=\" after",
    "unterminated quoted string",
    "invalid connection option",
    "end of string reached when looking for matching \"]\" in IPv6 host address",
    "IPv6 host address may not be empty",
    "unexpected character",
    "extra key/value separator \"=\" in URI query parameter",
    "missing key/value separator \"=\" in URI query parameter",
    "invalid URI query parameter",
    "invalid percent-encoded token",
    "unexpected spaces found",
};

std::string reason_without_quotation(std::string_view message) {
  for (const std::string_view reason : reasons) {
    if (message.starts_with(reason)) return std::string(reason);
  }
  return "libpq does not understand it";
}

tl::unexpected<Error> refuse(const std::string& reason) {
  return failure(Disposition::fatal,
                 "the PostgreSQL uri is invalid: " + reason + " (its text is not repeated here)", {},
                 "write postgresql://user@host:port/database, with special characters percent-encoded");
}

constexpr std::array<std::string_view, 8> credentials{"password", "passfile",    "sslpassword", "sslcert",
                                                      "sslkey",   "sslrootcert", "sslcrl",      "sslcrldir"};

std::string value_of(const Keywords& keywords, std::string_view name) {
  const auto found = std::ranges::find(keywords, name, &Keywords::value_type::first);
  return found == keywords.end() ? "" : found->second;
}

// A database that is not named has the user's name.
Keywords without_credentials(Keywords keywords) {
  const bool names_database = !value_of(keywords, "dbname").empty();
  std::erase_if(keywords, [&](const auto& pair) {
    return (names_database && pair.first == "user") ||
           std::ranges::find(credentials, pair.first) != credentials.end();
  });
  return keywords;
}

std::string whole_seconds(Millis t) {
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(t).count());
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> connection_keywords(const ConnectOptions& options) {
  char* message = nullptr;
  const OptionsHandle parsed{PQconninfoParse(options.uri.c_str(), &message)};
  if (!parsed) {
    const std::string reason = reason_without_quotation(message ? message : "");
    PQfreemem(message);
    return refuse(reason);
  }
  std::vector<std::pair<std::string, std::string>> keywords{
      {"application_name", options.application_name},
      {"connect_timeout", whole_seconds(options.connect_timeout)},
      {"tcp_user_timeout", std::to_string(options.tcp_user_timeout.count())},
      {"keepalives", "1"},
      {"keepalives_idle", "5"},
      {"keepalives_interval", "2"},
      {"keepalives_count", "3"},
  };
  for (const PQconninfoOption* o = parsed.get(); o->keyword; ++o) {
    if (!o->val || std::string_view(o->keyword) == "client_encoding") continue;
    // The rest of a password whose own '@' was not percent-encoded; it would be shown in every message about
    // the host.
    if (std::string_view(o->keyword) == "host" &&
        std::string_view(o->val).find('@') != std::string_view::npos) {
      return refuse("the host's name contains '@'");
    }
    std::erase_if(keywords, [&](const auto& pair) { return pair.first == o->keyword; });
    keywords.emplace_back(o->keyword, o->val);
  }
  keywords.emplace_back("client_encoding", "UTF8");
  return keywords;
}

bool differ_in_credentials_alone(const std::string& uri, const std::string& other) {
  const auto one = connection_keywords({.uri = uri});
  const auto two = connection_keywords({.uri = other});
  return one && two && *one != *two && without_credentials(*one) == without_credentials(*two);
}

}  // namespace outbox::pg
