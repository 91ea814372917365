#include "consumer/handler_transaction.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <cctype>

#include "consumer/core/failure.hpp"
#include "consumer/core/text.hpp"

namespace outbox {
namespace {

std::string lower_words(std::string_view sql) {
  std::string out;
  for (const char c : sql.substr(0, 64)) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (blank && (out.empty() || out.back() == ' ')) continue;
    out.push_back(blank ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return out;
}

/// A handler that ends the transaction would leave messages of its batch marked as done and never handled.
bool would_end_transaction(std::string_view sql) {
  const std::string words = lower_words(sql);
  const auto begins = [&](std::string_view word) {
    return words.starts_with(word) &&
           (words.size() == word.size() || std::isalnum(static_cast<unsigned char>(words[word.size()])) == 0);
  };
  if (begins("rollback")) {
    for (const auto* to : {"rollback to", "rollback work to", "rollback transaction to"})
      if (begins(to)) return false;
    return true;
  }
  constexpr std::string_view enders[] = {
      "commit", "end", "abort", "begin", "start transaction", "prepare transaction"};
  return std::ranges::any_of(enders, begins);
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
  throw SqlError(error.code, error.text(),
                 is_transient(error) ? SqlError::Repeat::may_help : SqlError::Repeat::is_useless);
}

Rows HandlerTransaction::exec_params(std::string_view sql, std::vector<Param> params) {
  if (would_end_transaction(sql))
    throw std::logic_error("a handler must not begin or end the transaction: the library does");
  auto rows = std::make_shared<const pg::Rows>(checked(session_.exec(sql, to_params(params))));
  const int size = rows->size();
  const std::int64_t affected = rows->affected();
  return Rows(std::move(rows), size, affected);
}

Uuid HandlerTransaction::publish(std::string_view topic, std::optional<std::string_view> key,
                                 std::optional<std::string_view> body, const HeaderList& headers) {
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
