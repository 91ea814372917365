#include "consumer/core/failure.hpp"

#include <algorithm>
#include <string_view>

#include "outbox/handler.hpp"

namespace outbox {
namespace {

constexpr Millis retry_wait_max = std::chrono::hours{1};
constexpr std::string_view environment_classes[] = {"0A", "28", "3D", "3F", "42"};

}  // namespace

bool is_transient(const Error& error) {
  return error.disposition == Disposition::retry || error.disposition == Disposition::reconnect ||
         error.disposition == Disposition::in_doubt;
}

Failure failure_of(const Error& error) {
  if (is_transient(error)) return {Failure::Kind::transient, error.text()};
  const bool environment =
      std::ranges::any_of(environment_classes, [&](std::string_view c) { return error.code.starts_with(c); });
  return {environment ? Failure::Kind::environment : Failure::Kind::message, error.text()};
}

Failure failure_of(const std::exception_ptr& thrown, const std::optional<Error>& breaking) {
  if (breaking && is_transient(*breaking)) return failure_of(*breaking);
  try {
    std::rethrow_exception(thrown);
  } catch (const Retry& e) {
    return {Failure::Kind::later, e.what(), std::clamp(e.wait, Millis{0}, retry_wait_max)};
  } catch (const Reject& e) {
    return {Failure::Kind::rejected, e.what()};
  } catch (const Stale& e) {
    return {Failure::Kind::stale, e.what()};
  } catch (const SqlError& e) {
    if (breaking && breaking->code == e.sqlstate()) return failure_of(*breaking);
    return {Failure::Kind::message, e.what()};
  } catch (const std::exception& e) {
    return {Failure::Kind::message, e.what()};
  } catch (...) {
    return {Failure::Kind::message, "the handler threw something that is no std::exception"};
  }
}

}  // namespace outbox
