#include "consumer/inbox/handler_transaction.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "consumer/core/failure.hpp"
#include "consumer/core/statement_kind.hpp"
#include "consumer/core/text.hpp"

namespace outbox {
namespace {

constexpr std::size_t sent_max = 1000;  // answers that libpq keeps until they are received

[[noreturn]] void throw_sql_error(const Error& error) {
  throw SqlError(error.code, error.text(),
                 is_transient(error) ? SqlError::Repeat::may_help : SqlError::Repeat::is_useless);
}

pg::Params to_params(const std::vector<Param>& values) {
  pg::Params out;
  for (const auto& value : values) {
    if (value.is_bytes())
      out.bytes(std::as_bytes(std::span(*value.value())));
    else if (value.value())
      out.untyped(*value.value());
    else
      out.null();
  }
  return out;
}

}  // namespace

bool is_clean(const pg::Session& session) {
  return !session.broken() && PQpipelineStatus(session.native()) == PQ_PIPELINE_OFF &&
         PQtransactionStatus(session.native()) == PQTRANS_IDLE;
}

pg::Rows HandlerTransaction::checked(Result<pg::Rows> rows) {
  if (rows) return *std::move(rows);
  const Error& error = rows.error();
  if (!first_error_) first_error_ = error;
  throw_sql_error(error);
}

void HandlerTransaction::begin(std::size_t message) {
  message_ = message;
  first_error_.reset();
}

/// What a handler does must not reach the messages behind it, nor whoever has the server's process next.
void HandlerTransaction::admit(std::string_view sql) {
  switch (kind_of(sql)) {
    case StatementKind::plain:
      return;
    case StatementKind::savepoint:
      if (std::exchange(guarded_, true)) return;
      if (sent_.size() >= sent_max || sent_failure_) require_sent();
      sent_.push_back({message_, std::nullopt});
      static_cast<void>(session_.send("SAVEPOINT outbox_message", {}));
      return;
    case StatementKind::for_rest_of_transaction:
      return require_solitude();
    case StatementKind::of_transaction:
      throw std::logic_error("a handler must not begin or end the transaction: the library does");
    case StatementKind::of_session:
      throw std::logic_error(
          "a handler must not change what outlives its transaction (SET without LOCAL, LISTEN, PREPARE, a "
          "cursor "
          "WITH HOLD, an advisory lock of the session): other messages, and other clients of a pooler, would "
          "meet "
          "it; use SET LOCAL and pg_advisory_xact_lock()");
    case StatementKind::of_library:
      throw std::logic_error("savepoints whose name begins with outbox_ are the library's");
  }
}

void HandlerTransaction::require_solitude() {
  if (company_ == Company::alone) return;
  needs_solitude_ = true;
  throw std::runtime_error("it needs a transaction of its own, and gets one");
}

void HandlerTransaction::end() {
  if (!std::exchange(guarded_, false) || sent_failure_) return;
  sent_.push_back({message_, std::nullopt});
  static_cast<void>(session_.send("RELEASE SAVEPOINT outbox_message", {}));
}

void HandlerTransaction::send_params(std::string_view sql, std::vector<Param> params,
                                     std::optional<Affects> expected) {
  admit(sql);
  if (sent_.size() >= sent_max || sent_failure_) require_sent();
  sent_.push_back({message_, std::move(expected)});
  // A connection that broke is known by receive(), too, which says what that means.
  static_cast<void>(session_.send(sql, to_params(params)));
}

const std::optional<HandlerTransaction::SentFailure>& HandlerTransaction::receive() {
  if (!sent_.empty()) static_cast<void>(take());
  return sent_failure_;
}

/// Everything that the session was sent, which may be more than sent_.
pg::Session::Received HandlerTransaction::take() {
  const auto sent = std::exchange(sent_, {});
  auto received = session_.receive();
  const std::size_t good = std::min(received.rows.size(), sent.size());
  for (std::size_t i = 0; i < good && !sent_failure_; ++i) note(sent[i], received.rows[i]);
  if (!received.error || good == sent.size() || sent_failure_) return received;
  const std::size_t message = sent[good].message;
  sent_failure_ = {message, failure_of(*received.error), received.error};
  if (message == message_ && !first_error_) first_error_ = received.error;
  return received;
}

void HandlerTransaction::note(const Sent& sent, const pg::Rows& rows) {
  if (!sent.expected || rows.affected() == sent.expected->rows) return;
  const auto& [expected, else_reject] = *sent.expected;
  sent_failure_ = {sent.message,
                   {else_reject.empty() ? Failure::Kind::message : Failure::Kind::rejected,
                    else_reject.empty() ? "a statement affected " + std::to_string(rows.affected()) +
                                              " rows, where " + std::to_string(expected) + " were expected"
                                        : else_reject}};
}

/// What comes behind a failure would see the database as it never will be.
void HandlerTransaction::require_sent() {
  if (!receive()) return;
  if (!sent_failure_->error) throw std::runtime_error(sent_failure_->failure.reason);
  throw_sql_error(*sent_failure_->error);
}

pg_conn* HandlerTransaction::native() {
  require_solitude();  // what is done by libpq can't be seen
  require_sent();
  return session_.native();
}

Rows HandlerTransaction::exec_params(std::string_view sql, std::vector<Param> params) {
  admit(sql);
  auto rows = std::make_shared<const pg::Rows>(exec_behind_sent(sql, to_params(params)));
  const int size = rows->size();
  const std::int64_t affected = rows->affected();
  return Rows(std::move(rows), size, affected);
}

/// One round trip, with what was sent before.
pg::Rows HandlerTransaction::exec_behind_sent(std::string_view sql, const pg::Params& params) {
  if (sent_.empty() || sent_failure_) {
    require_sent();
    return checked(session_.exec_prepared(sql, params, pg::Format::text));
  }
  static_cast<void>(session_.send(sql, params));
  auto received = take();
  require_sent();
  if (received.error) return checked(failure(*std::move(received.error)));
  OUTBOX_CHECK(!received.rows.empty(), "every statement has an answer or an error");
  return std::move(received.rows.back());
}

Uuid HandlerTransaction::publish(std::string_view topic, std::optional<std::string_view> key,
                                 std::optional<std::string_view> body, const HeaderList& headers) {
  require_sent();
  if (body_type_.empty()) {
    const auto type = checked(session_.exec(statements_.body_type, pg::Params{}.text(statements_.schema)));
    if (type.empty())
      throw std::logic_error("publish() needs outbox_publish() in schema " + statements_.schema +
                             ": run `outboxd migrate` on this database");
    body_type_ = type.text(0, 0);
  }
  pg::Params params;
  params.text(topic).text(key);
  if (body && body_type_ == "bytea")
    params.bytes(std::as_bytes(std::span(*body)));
  else
    params.untyped(body);
  params.text(headers_object_json(headers));
  return checked(session_.exec_prepared(statements_.publish, params)).uuid(0, 0);
}

bool HandlerTransaction::advance(std::string_view entity, std::int64_t version) {
  require_sent();
  pg::Params params;
  params.text(consumer_).text(entity).i64(version);
  return checked(session_.exec_prepared(statements_.version_advance, params)).affected() == 1;
}

void HandlerTransaction::run_after_commit() noexcept {
  for (const auto& work : after_commit_) {
    try {
      work();
    } catch (...) {
      continue;  // as Transaction::after_commit says: nothing can be undone any more
    }
  }
}

HandlerTransaction::State HandlerTransaction::state() const {
  auto* connection = session_.native();
  if (session_.broken()) return State::lost;
  if (!sent_.empty()) return State::usable;  // as far as is known
  if (PQpipelineStatus(connection) != PQ_PIPELINE_OFF) return State::unfit;
  switch (PQtransactionStatus(connection)) {
    case PQTRANS_INTRANS:
      return State::usable;
    case PQTRANS_INERROR:
      return State::failed;
    case PQTRANS_IDLE:
      return State::ended;
    case PQTRANS_ACTIVE:
    case PQTRANS_UNKNOWN:
      break;
  }
  return State::unfit;
}

}  // namespace outbox
