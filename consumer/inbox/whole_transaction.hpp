#pragma once
// BEGIN, work, COMMIT on a Session, as the consumer needs it: whatever goes wrong, nothing was written, and
// the failure says whom it is held against.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "consumer/core/failure.hpp"
#include "consumer/inbox/statements.hpp"
#include "outbox/inbox.hpp"
#include "pg/session.hpp"

namespace outbox {

/// What a transaction of the inbox works with; lives with the InboxSession.
struct InboxContext {
  pg::Session& session;
  const Statements& statements;
  std::string_view consumer;
  std::string& body_type;  ///< of the outbox table; looked up once a session, empty until then
  Guard guard;
  const IdOf& id_of;
};

/// Nothing was written, or it is in doubt.
struct RolledBack {
  Failure failure;
  std::optional<std::size_t> at;  ///< the candidate whose handler failed; nullopt: not one's (claiming, the
                                  ///< COMMIT, a span's handler)
  bool by_handler = false;
};
using BatchResult = std::variant<std::vector<Outcome>, RolledBack>;

/// A failure of the library's own statements. It is nobody's fault, so that no message is ever buried for it.
[[nodiscard]] RolledBack not_ours(const Error& error);

/// Shape: what `work` answers, committed, unless it answers RolledBack or no outcome at all. What is committed
/// is where a commit has to be, also where it only found what others had written: on the standby, if that is
/// asked for. Where that is in doubt, the failure is transient, and the repetition finds out. A COMMIT that fails is RolledBack
/// without a candidate: a deferred constraint speaks only then, and does not say which message it means.
[[nodiscard]] BatchResult in_transaction(pg::Session& session, const Statements& statements,
                                         const std::function<BatchResult()>& work);

}  // namespace outbox
