#include "consumer/core/failure.hpp"

#include <doctest/doctest.h>

#include "outbox/handler.hpp"
#include "pg/sqlstate.hpp"

using namespace outbox;
using Kind = Failure::Kind;

namespace {

Error sql(const std::string& code) {
  return {pg::classify_sqlstate(code), code, "refused", ""};
}

template <class E>
Kind thrown(const E& e, const std::optional<Error>& breaking = std::nullopt) {
  return failure_of(std::make_exception_ptr(e), breaking).kind;
}

}  // namespace

TEST_CASE("what PostgreSQL could do better next time is nobody's fault") {
  for (const auto* code :
       {"40001", "40P01", "55P03", "57P01", "57P02", "57P03", "57014", "08006", "08007", "53300"})
    CHECK(failure_of(sql(code)).kind == Kind::transient);
}

TEST_CASE("what any message would meet is the environment's, what this one met is the message's") {
  for (const auto* code : {"42501", "42P01", "3F000", "28000", "0A000"})
    CHECK(failure_of(sql(code)).kind == Kind::environment);
  for (const auto* code : {"25P02"}) CHECK(failure_of(sql(code)).kind != Kind::transient);
  for (const auto* code : {"23505", "23514", "22003", "P0001"})
    CHECK(failure_of(sql(code)).kind == Kind::message);
}

TEST_CASE("Retry is later, Reject is rejected, and any other exception is the message's") {
  CHECK(thrown(Retry("busy")) == Kind::later);
  CHECK(thrown(Reject("unknown account")) == Kind::rejected);
  CHECK(thrown(std::logic_error("bug")) == Kind::message);
  CHECK(thrown(42) == Kind::message);
  CHECK(thrown(SqlError("23514", "refused", SqlError::Repeat::is_useless), sql("23514")) == Kind::message);
  CHECK(thrown(SqlError("42501", "refused", SqlError::Repeat::is_useless), sql("42501")) ==
        Kind::environment);
}

TEST_CASE("a transient error outweighs what the handler made of it") {
  CHECK(thrown(Reject("it failed"), sql("40P01")) == Kind::transient);
  CHECK(thrown(std::runtime_error("wrapped"), sql("40001")) == Kind::transient);
}
