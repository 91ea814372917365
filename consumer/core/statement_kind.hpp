#pragma once
// What a handler's statement would do to the transaction that it shares with others, read from its text. Pure;
// any thread. What a function does inside can't be seen from here.

#include <string_view>

namespace outbox {

enum class StatementKind {
  plain,
  savepoint,       ///< sets one
  of_transaction,  ///< begins or ends the transaction
  of_session,      ///< outlives it: SET without LOCAL, LISTEN, PREPARE, an advisory lock of the session …
  of_library,      ///< names a savepoint of the library's own
  for_rest_of_transaction,  ///< SET LOCAL, set_config, SET CONSTRAINTS, a temporary table, DO
};

/// Comments and empty statements before the first word, and the case of letters, make no difference.
[[nodiscard]] StatementKind kind_of(std::string_view sql);

}  // namespace outbox
