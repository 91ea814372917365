#include "pg/sqlstate.hpp"

#include <array>

namespace outbox::pg {
namespace {

struct Rule {
  std::string_view prefix;  ///< five characters: one code; two: a class
  Disposition disposition;
};

using enum Disposition;

// A code stands before its class: the first rule that fits decides.
constexpr std::array rules{
    Rule{"08007", in_doubt},   // transaction resolution unknown
    Rule{"08", reconnect},     // connection exception
    Rule{"0A000", fatal},      // feature not supported
    Rule{"21", quarantine},    // cardinality violation: this row's data
    Rule{"22", quarantine},    // data exception
    Rule{"23", quarantine},    // constraint violation
    Rule{"25006", reconnect},  // read only: the server was demoted; another host may be writable
    Rule{"25P03", reconnect},  // idle in transaction timeout: the session is gone
    Rule{"25P04", reconnect},  // transaction timeout: the session is gone
    Rule{"26000",
         retry},        // the prepared statement is gone (a pooler, DISCARD ALL): prepared again by the retry
    Rule{"28", fatal},  // invalid authorization
    Rule{"3D", fatal},  // no such database
    Rule{"40003", in_doubt},  // statement completion unknown
    Rule{"40", retry},        // serialization failure, deadlock
    Rule{"53", retry},        // no memory, disk or connections: somebody has to make room
    Rule{"54", quarantine},   // program limit exceeded: this row's data
    Rule{"55006", retry},     // object in use
    Rule{"55P03", retry},     // lock not available
    Rule{"57014", retry},     // cancelled: our deadline, or a statement_timeout
    Rule{"57P04", fatal},     // the database was dropped
    Rule{"57", reconnect},    // operator intervention: shutdown, crash, starting up, idle session timeout
    Rule{"58", retry},        // the server's disk or system
    Rule{"72", retry},        // snapshot too old
};

}  // namespace

Disposition classify_sqlstate(std::string_view sqlstate) noexcept {
  for (const Rule& rule : rules) {
    if (sqlstate.size() == 5 && sqlstate.substr(0, rule.prefix.size()) == rule.prefix)
      return rule.disposition;
  }
  return fatal;
}

}  // namespace outbox::pg
