#include <doctest/doctest.h>

#include <string_view>

#include "pg/sqlstate.hpp"

namespace outbox::pg {

TEST_CASE("every SQLSTATE that we know says what to do next") {
  using enum Disposition;
  struct Row {
    std::string_view sqlstate;
    Disposition disposition;
  };
  for (const Row& row : {
           Row{"08000", reconnect},   // connection exception
           Row{"08001", reconnect},   // unable to connect
           Row{"08003", reconnect},   // connection does not exist
           Row{"08006", reconnect},   // connection failure
           Row{"08007", in_doubt},    // transaction resolution unknown
           Row{"08P01", reconnect},   // protocol violation
           Row{"0A000", fatal},       // feature not supported
           Row{"21000", quarantine},  // cardinality violation
           Row{"22001", quarantine},  // string too long
           Row{"22021", quarantine},  // character not in repertoire
           Row{"22P02", quarantine},  // invalid text representation
           Row{"23502", quarantine},  // not null violation
           Row{"23505", quarantine},  // unique violation
           Row{"23514", quarantine},  // check violation
           Row{"25006", reconnect},   // read only transaction: a demoted server
           Row{"25P02", fatal},       // in failed transaction: ours to prevent
           Row{"25P03", reconnect},   // idle in transaction timeout
           Row{"25P04", reconnect},   // transaction timeout
           Row{"26000", retry},       // prepared statement lost
           Row{"28000", fatal},       // invalid authorization
           Row{"28P01", fatal},       // invalid password
           Row{"3D000", fatal},       // no such database
           Row{"40001", retry},       // serialization failure
           Row{"40003", in_doubt},    // statement completion unknown
           Row{"40P01", retry},       // deadlock
           Row{"42501", fatal},       // insufficient privilege
           Row{"42601", fatal},       // syntax error
           Row{"42P01", fatal},       // undefined table
           Row{"53100", retry},       // disk full
           Row{"53200", retry},       // out of memory
           Row{"53300", retry},       // too many connections
           Row{"54000", quarantine},  // program limit exceeded
           Row{"55000", fatal},       // object not in prerequisite state
           Row{"55006", retry},       // object in use
           Row{"55P03", retry},       // lock not available
           Row{"57014", retry},       // query cancelled
           Row{"57P01", reconnect},   // admin shutdown
           Row{"57P02", reconnect},   // crash shutdown
           Row{"57P03", reconnect},   // cannot connect now
           Row{"57P04", fatal},       // database dropped
           Row{"57P05", reconnect},   // idle session timeout
           Row{"58030", retry},       // io error
           Row{"72000", retry},       // snapshot too old
           Row{"P0001", fatal},       // raise exception
           Row{"XX000", fatal},       // internal error
           Row{"XX001", fatal},       // data corrupted
       }) {
    CAPTURE(row.sqlstate);
    CHECK(classify_sqlstate(row.sqlstate) == row.disposition);
  }
}

TEST_CASE("an unknown code has its class's meaning, and what is no SQLSTATE is fatal") {
  CHECK(classify_sqlstate("40ZZZ") == Disposition::retry);
  CHECK(classify_sqlstate("22ZZZ") == Disposition::quarantine);
  for (const std::string_view odd : {"", "4", "40", "400010", "ZZZZZ"})
    CHECK(classify_sqlstate(odd) == Disposition::fatal);
}
}  // namespace outbox::pg
