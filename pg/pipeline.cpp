#include "pg/pipeline.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace outbox::pg {
namespace {

constexpr Millis drop_after_cancel{2000};
constexpr int params_max = 65'535;  // a 16-bit count on the wire
// A TLS record holds more than libpq reads at once, and what its TLS library keeps back does not make the
// socket readable.
constexpr int reads_with_tls = 3;

int format_code(Format f) {
  return f == Format::binary ? 1 : 0;
}

std::string first_line(std::string_view text) {
  return one_line(text.substr(0, text.find('\n')));
}

bool is_severity(const PGresult* result, std::string_view severity) {
  const char* value = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  return value && value == severity;
}

}  // namespace

Pipeline::Pipeline(ConnectionHandle connection, Naming naming)
    : connection_(std::move(connection)), naming_(naming) {
  PQsetNoticeReceiver(raw(), on_notice, this);
  broken_ = PQsetnonblocking(raw(), 1) != 0 || PQenterPipelineMode(raw()) != 1;
}

// Outside a statement libpq hands over the server's FATAL as a notice. A segment's notices come before its
// SYNC's answer, so that they are the first awaited one's.
void Pipeline::on_notice(void* self, const PGresult* notice) noexcept {
  auto& pipeline = *static_cast<Pipeline*>(self);
  if (is_severity(notice, "FATAL") || is_severity(notice, "PANIC")) pipeline.last_words_ = error_of(notice);
  if (pipeline.awaited_.empty()) return;
  if (auto doubt = doubt_of(notice, Spoken::anywhere)) pipeline.awaited_.front().doubt = std::move(doubt);
}

void Pipeline::push(Segment segment, Connection::Done done, MonoTime deadline) {
  for (const Statement& s : segment.statements) {
    OUTBOX_CHECK(s.sql && s.params.count() <= params_max,
                 "a statement has a text and at most 65,535 parameters");
  }
  queued_.push_back({.segment = std::move(segment), .done = std::move(done), .deadline = deadline});
}

bool Pipeline::give(Entry& entry, const Statement& statement) {
  const Params& p = statement.params;
  const auto plan = naming_ == Naming::named ? plans_.use(statement.sql, p, segments_) : std::nullopt;
  const int format = format_code(statement.results);
  if (!plan) {
    entry.steps.push_back({Expects::rows, 0});
    return PQsendQueryParams(raw(), statement.sql->c_str(), p.count(), p.types(), p.values(), p.lengths(),
                             p.formats(), format) == 1;
  }
  const std::string name = plan_name(plan->id);
  if (plan->is_new) {
    entry.steps.push_back({Expects::plan, plan->id});
    if (PQsendPrepare(raw(), name.c_str(), statement.sql->c_str(), p.count(), p.types()) != 1) return false;
  }
  entry.steps.push_back({Expects::rows, plan->id});
  return PQsendQueryPrepared(raw(), name.c_str(), p.count(), p.values(), p.lengths(), p.formats(), format) ==
         1;
}

bool Pipeline::give(Entry& entry) {
  ++segments_;
  entry.steps.reserve(entry.segment.statements.size() + 1);
  entry.rows.reserve(entry.segment.statements.size());
  for (const Statement& statement : entry.segment.statements) {
    if (!give(entry, statement)) return false;
  }
  entry.segment.statements.clear();  // libpq has its own copy
  return PQpipelineSync(raw()) == 1;
}

// One segment at a time lies in libpq's buffer, so that after a loss it is known which one's SYNC had not
// gone out.
Flushed Pipeline::flush() {
  while (!broken_) {
    const int left = PQflush(raw());
    if (left < 0) break;
    if (left > 0) return Flushed::partly;
    if (!awaited_.empty()) awaited_.back().sent = true;
    if (queued_.empty()) return Flushed::all;
    awaited_.push_back(std::move(queued_.front()));
    queued_.pop_front();
    if (!give(awaited_.back())) break;
  }
  broken_ = true;
  return Flushed::broken;
}

bool Pipeline::read(Answers& answers) {
  const int reads = PQsslInUse(raw()) != 0 ? reads_with_tls : 1;
  bool alive = !broken_;
  for (int i = 0; i < reads && alive; ++i) alive = PQconsumeInput(raw()) == 1;
  take_results(answers);  // also after a loss: answers may have come before it
  broken_ = broken_ || !alive || PQstatus(raw()) != CONNECTION_OK;
  return !broken_;
}

// libpq gives a null between the statements of a segment, but none after a SYNC, and nulls forever after a
// loss.
void Pipeline::take_results(Answers& answers) {
  bool was_null = false;
  while (!broken_ && !awaited_.empty() && PQisBusy(raw()) == 0) {
    ResultHandle result{PQgetResult(raw())};
    if (result) {
      take(std::move(result), answers);
      was_null = false;
    } else if (std::exchange(was_null, true)) {
      broken_ = true;
      return;
    }
  }
}

void Pipeline::take(ResultHandle result, Answers& answers) {
  Entry& entry = awaited_.front();
  const ExecStatusType status = PQresultStatus(result.get());
  const bool at_sync = entry.step == entry.steps.size();
  if (status == PGRES_PIPELINE_SYNC) return finish(answers);
  const bool good = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_EMPTY_QUERY;
  if (status != PGRES_PIPELINE_ABORTED && !good) take_error(entry, result.get());
  if (at_sync) return;
  const Step step = entry.steps[entry.step++];
  const bool lost_plan = step.expects == Expects::plan ? !good : plan_is_gone(result.get());
  if (lost_plan) plans_.forget(step.plan);
  if (good && step.expects == Expects::plan) plans_.made(step.plan);
  if (good && step.expects == Expects::rows) entry.rows.emplace_back(result.release());
}

void Pipeline::finish(Answers& answers) {
  Entry& entry = awaited_.front();
  if (entry.step != entry.steps.size()) {  // out of step: the next segment would get this one's rows
    broken_ = true;
    return;
  }
  Result<std::vector<Rows>> result = std::move(entry.rows);
  if (entry.doubt) result = failure(std::move(*entry.doubt));
  if (entry.error) result = failure(std::move(*entry.error));
  answers.push_back({std::move(entry.done), std::move(result)});
  awaited_.pop_front();
}

void Pipeline::take_error(Entry& entry, const PGresult* result) {
  if (entry.error) return;
  entry.error = error_of(result);
  // At the SYNC, where the commit happens, only a plain ERROR says that it did not.
  const bool at_sync = entry.step == entry.steps.size();
  entry.certain = !entry.error->code.empty() && (!at_sync || is_severity(result, "ERROR"));
  if (!entry.certain) entry.error->disposition = Disposition::in_doubt;
  if (plan_is_gone(result)) entry.error->disposition = Disposition::retry;
}

std::optional<std::string> Pipeline::notification() {
  struct FreeNotify {
    void operator()(PGnotify* n) const noexcept { PQfreemem(n); }
  };
  const std::unique_ptr<PGnotify, FreeNotify> notify{PQnotifies(raw())};
  if (!notify) return std::nullopt;
  return notify->relname;
}

void Pipeline::abandon(const std::string& reason, Answers& answers) {
  for (Entry& entry : awaited_) {
    const auto disposition = entry.sent ? Disposition::in_doubt : Disposition::reconnect;
    answers.push_back({std::move(entry.done),
                       entry.certain ? failure(std::move(*entry.error)) : failure(disposition, reason)});
  }
  for (Entry& entry : queued_)
    answers.push_back({std::move(entry.done), failure(Disposition::reconnect, reason)});
  awaited_.clear();
  queued_.clear();
}

Overdue Pipeline::overdue(MonoTime now) {
  Overdue verdict = Overdue::none;
  for (auto* queue : {&awaited_, &queued_}) {
    for (Entry& entry : *queue) {
      if (entry.cancelled && now >= entry.deadline + drop_after_cancel) return Overdue::drop;
      if (entry.cancelled || now < entry.deadline) continue;
      entry.cancelled = true;
      verdict = Overdue::cancel;
    }
  }
  return verdict;
}

std::optional<MonoTime> Pipeline::next_deadline() const {
  std::optional<MonoTime> first;
  for (const auto* queue : {&awaited_, &queued_}) {
    for (const Entry& entry : *queue) {
      const MonoTime at = entry.cancelled ? entry.deadline + drop_after_cancel : entry.deadline;
      if (!first || at < *first) first = at;
    }
  }
  return first;
}

Error Pipeline::loss() const {
  Error error{Disposition::reconnect,
              {},
              "the connection to PostgreSQL was lost: " + first_line(PQerrorMessage(raw())),
              {}};
  if (last_words_) {
    error.code = last_words_->code;
    error.message = "the connection to PostgreSQL was lost: " + last_words_->message;
  }
  return error;
}

}  // namespace outbox::pg
