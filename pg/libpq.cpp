#include "pg/libpq.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "pg/sqlstate.hpp"

namespace outbox::pg {
namespace {

void ignore_notice(void*, const PGresult*) noexcept {}

std::string field(const PGresult* result, int code) {
  const char* value = PQresultErrorField(result, code);
  return value ? value : "";
}

bool code_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
}

// The SQLSTATE's place in a verbose message: "<severity>:  <code>: <text>".
std::string::size_type find_code(const std::string& message) {
  for (auto at = message.find(":  "); at != std::string::npos; at = message.find(":  ", at + 1)) {
    const std::string_view rest = std::string_view(message).substr(at + 3);
    if (rest.size() > 6 && rest.substr(5, 2) == ": " &&
        std::all_of(rest.begin(), rest.begin() + 5, code_character)) {
      return at + 3;
    }
  }
  return std::string::npos;
}

// Refused in a way that repeating can't help; what is left (starting up, too many connections, shutting down)
// passes.
bool refused_for_good(std::string_view code) {
  constexpr std::array<std::string_view, 5> classes{"28", "3D", "42", "22", "0A"};
  return std::find(classes.begin(), classes.end(), code.substr(0, 2)) != classes.end();
}

std::string_view advice_for(std::string_view code) {
  const auto sqlstate_class = code.substr(0, 2);
  if (sqlstate_class == "28") return "check user and password in the uri, and pg_hba.conf of the server";
  if (sqlstate_class == "3D") return "check the database's name in the uri";
  if (sqlstate_class == "42") return "check the role's privileges (CONNECT on the database)";
  return "";
}

// libpq has no code for what fails before the server speaks: its own words tell, English where no locale
// was set.
std::string_view advice_without_code(std::string_view message) {
  struct Known {
    std::string_view words;
    std::string_view advice;
  };
  constexpr std::array known{
      Known{"certificate", "check sslrootcert, and that the uri names the host as the certificate does"},
      Known{"does not support SSL", "turn ssl on at the server; sslmode in the uri asks for it"},
      Known{"channel binding",
            "let the server ask for scram-sha-256 over TLS; channel_binding in the uri asks for it"},
  };
  for (const Known& k : known)
    if (message.find(k.words) != std::string_view::npos) return k.advice;
  return "";
}

Millis attempt_limit(const Keywords& keywords, const ConnectOptions& options) {
  long seconds = 0;
  long hosts = 1;
  for (const auto& [name, value] : keywords) {
    if (name == "connect_timeout") std::from_chars(value.data(), value.data() + value.size(), seconds);
    if (name == "host" || name == "hostaddr")
      hosts = std::max(hosts, 1 + std::count(value.begin(), value.end(), ','));
  }
  const Millis each = seconds > 0 ? Millis{std::chrono::seconds{seconds}} : options.connect_timeout;
  // A silent first host is given up by the kernel only after tcp_user_timeout; then the next one is tried.
  return hosts == 1 ? each : hosts * std::max(each, options.tcp_user_timeout);
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string out(text.substr(0, text.find_last_not_of(" \t\r\n") + 1));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return out;
}

Error error_of(const PGresult* result) {
  const std::string code = field(result, PG_DIAG_SQLSTATE);
  std::string message = one_line(field(result, PG_DIAG_MESSAGE_PRIMARY));
  if (message.empty()) message = one_line(PQresultErrorMessage(result));
  return Error{classify_sqlstate(code), code, std::move(message),
               one_line(field(result, PG_DIAG_MESSAGE_HINT))};
}

bool plan_is_gone(const PGresult* result) {
  return field(result, PG_DIAG_SQLSTATE) == "26000" ||
         field(result, PG_DIAG_SOURCE_FUNCTION) == "RevalidateCachedQuery";
}

std::optional<Error> doubt_of(const PGresult* notice, Spoken spoken) {
  if (field(notice, PG_DIAG_SEVERITY_NONLOCALIZED) != "WARNING") return std::nullopt;
  const bool waited_for_standby = field(notice, PG_DIAG_SOURCE_FILE) == "syncrep.c";
  const bool by_function = !field(notice, PG_DIAG_CONTEXT).empty();
  if (!waited_for_standby && (spoken == Spoken::anywhere || by_function)) return std::nullopt;
  Error error = error_of(notice);
  error.disposition = Disposition::in_doubt;
  error.message = "the COMMIT is in doubt: " + error.message;
  return error;
}

Error connect_error(const PGconn* connection) {
  Error error = connect_error(PQerrorMessage(connection));
  if (PQconnectionNeedsPassword(connection) != 0) {
    error.disposition = Disposition::fatal;
    error.advice = advice_for("28");
  }
  return error;
}

Error connect_error(const std::string& message) {
  const auto at = find_code(message);
  if (at == std::string::npos)
    return Error{Disposition::retry, {}, one_line(message), std::string(advice_without_code(message))};
  const std::string code = message.substr(at, 5);
  const std::string_view reason = std::string_view(message).substr(at + 7);
  return Error{refused_for_good(code) ? Disposition::fatal : Disposition::retry, code,
               one_line(message.substr(0, at)) + " " + one_line(reason.substr(0, reason.find('\n'))),
               std::string(advice_for(code))};
}

Result<Attempt> begin_connection(const Keywords& keywords, const ConnectOptions& options) {
  std::vector<const char*> names;
  std::vector<const char*> values;
  for (const auto& [name, value] : keywords) {
    names.push_back(name.c_str());
    values.push_back(value.c_str());
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  ConnectionHandle connection{PQconnectStartParams(names.data(), values.data(), 0)};
  if (!connection) return failure(Disposition::retry, "no memory for a connection");
  if (PQstatus(connection.get()) == CONNECTION_BAD) return failure(connect_error(connection.get()));
  PQsetErrorVerbosity(connection.get(), PQERRORS_VERBOSE);
  PQsetNoticeReceiver(connection.get(), ignore_notice, nullptr);
  return Attempt{std::move(connection), attempt_limit(keywords, options)};
}

void established(PGconn* connection) {
  PQsetErrorVerbosity(connection, PQERRORS_DEFAULT);
}

bool has_iso_dates(const PGconn* connection) {
  const char* style = PQparameterStatus(connection, "DateStyle");
  return style && std::string_view(style).starts_with("ISO");
}

}  // namespace outbox::pg
