#pragma once
// What Session and Connection share of libpq: owners of its handles, its errors as ours, and how a connection
// is begun. Private to pg/.

#include <libpq-fe.h>

#include <memory>
#include <optional>
#include <string>

#include "pg/addresses.hpp"
#include "pg/session.hpp"

namespace outbox::pg {

struct CloseConnection {
  void operator()(PGconn* c) const noexcept { PQfinish(c); }
};
using ConnectionHandle = std::unique_ptr<PGconn, CloseConnection>;

struct FreeCancel {
  void operator()(PGcancel* c) const noexcept { PQfreeCancel(c); }
};
using CancelHandle = std::unique_ptr<PGcancel, FreeCancel>;

struct ClearResult {
  void operator()(PGresult* r) const noexcept { PQclear(r); }
};
using ResultHandle = std::unique_ptr<PGresult, ClearResult>;

/// `text` on one line, without the blanks at its end.
[[nodiscard]] std::string one_line(std::string_view text);

/// Shape: primary message and SQLSTATE of a failed result. Never its DETAIL, which shows the row's values.
[[nodiscard]] Error error_of(const PGresult* result);
/// Whether the statement failed because the server no longer has (or can no longer use) the prepared plan.
[[nodiscard]] bool plan_is_gone(const PGresult* result);

/// What a notice means for the transaction that commits meanwhile. Shape: in_doubt where the wait for a
/// synchronous standby was cancelled, which PostgreSQL says by a mere WARNING beside its success; nullopt: any
/// other notice. `at_commit`: the statement is a COMMIT itself, which has no other harmless warnings than
/// those that a function raised in it.
enum class Spoken { at_commit, anywhere };
[[nodiscard]] std::optional<Error> doubt_of(const PGresult* notice, Spoken spoken);

/// Why a connection could not be made. libpq 15 keeps the server's SQLSTATE only in the verbose form of the
/// message, which begin_connection() asks for ("FATAL:  28P01: password ..."); that position does not depend
/// on the language. Errors: refused for good (class 28, 3D, 42, 22, 0A, or a password is needed and there is
/// none): fatal; else retry.
[[nodiscard]] Error connect_error(const PGconn* connection);
[[nodiscard]] Error connect_error(const std::string& message);

struct Attempt {
  ConnectionHandle connection;
  Millis limit{};  ///< how long the whole attempt may take
};
/// PQconnectStart with what connection_keywords() made of `options`; the caller polls it, and says
/// established() when libpq does. Blocks: for the look-up of a host's name, where `keywords` has one and no
/// hostaddr.
[[nodiscard]] Result<Attempt> begin_connection(const Keywords& keywords, const ConnectOptions& options);
/// Undoes what begin_connection() needed only while connecting.
void established(PGconn* connection);
/// Whether the session's text form of times is the one that Rows reads; a role's setting can differ.
[[nodiscard]] bool has_iso_dates(const PGconn* connection);

inline constexpr const char* set_iso_dates = "SET datestyle = 'ISO'";

}  // namespace outbox::pg
