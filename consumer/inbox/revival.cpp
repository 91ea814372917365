#include "consumer/inbox/revival.hpp"

#include <algorithm>

#include "consumer/core/text.hpp"
#include "consumer/inbox/handler_run.hpp"

namespace outbox {
namespace {

constexpr std::size_t error_bytes_max = 2000;
constexpr Millis wait_min{1000};  // before a message whose handler said "not now" is taken again

std::vector<Outcome> one(Fate fate, Verdict verdict = Verdict::fresh, std::string reason = {}) {
  return {Outcome{.fate = fate, .verdict = verdict, .reason = std::move(reason)}};
}

}  // namespace

BatchResult Revival::apply(const HandlerCall& handler, std::optional<DeadLetter>& taken) {
  HandlerTransaction tx(inbox_.session, inbox_.statements, inbox_.consumer, inbox_.body_type, Company::alone);
  taken.reset();
  BatchResult result = in_transaction(inbox_.session, inbox_.statements, [&]() -> BatchResult {
    auto next = take();
    if (!next) return not_ours(next.error());
    if (!*next) return std::vector<Outcome>{};
    const DeadLetter& letter = taken.emplace(**std::move(next));
    const auto changed = change_state(letter, ProcessedState::applied);
    if (!changed) return not_ours(changed.error());
    if (!*changed) {
      if (const Status done = resolve(letter, "not dead any more"); !done) return not_ours(done.error());
      return one(Fate::skipped, Verdict::duplicate);
    }
    const Candidate candidate = known_candidate(letter.record, letter.msg_id, inbox_.id_of);
    const auto late = overtaken(candidate);
    if (!late) return not_ours(late.error());
    if (*late)
      return RolledBack{
          {Failure::Kind::stale, "a later message of its key was applied"}, std::size_t{0}, true};
    auto failed = run_handler(tx, handler, {&*candidate.message, 1}, 0);
    if (!failed) failed = finish_handlers(tx);
    if (failed) return RolledBack{std::move(failed->failure), std::size_t{0}, true};
    if (const Status done = resolve(letter, "applied"); !done) return not_ours(done.error());
    return one(Fate::applied);
  });
  if (std::holds_alternative<std::vector<Outcome>>(result)) tx.run_after_commit();
  return result;
}

BatchResult Revival::write_down(const DeadLetter& letter, const Failure& failure) {
  return in_transaction(inbox_.session, inbox_.statements, [&]() -> BatchResult {
    Status written;
    auto outcome = one(Fate::failed, Verdict::fresh, failure.reason);
    if (failure.kind == Failure::Kind::stale) {
      const auto changed = change_state(letter, ProcessedState::discarded);
      written = changed ? resolve(letter, "stale") : Status(tl::unexpected(changed.error()));
      outcome = one(Fate::skipped, Verdict::stale, failure.reason);
    } else if (failure.kind != Failure::Kind::message && failure.kind != Failure::Kind::rejected) {
      const auto wait = std::max(wait_min, failure.wait);
      pg::Params params;
      params.i64(letter.id).i64(wait.count()).text(to_text(failure.reason, error_bytes_max));
      const auto rows = inbox_.session.exec_prepared(inbox_.statements.dead_later, params);
      written = rows ? Status{} : Status(tl::unexpected(rows.error()));
    } else {
      written = call(inbox_.statements.dead_failed, letter.id, to_text(failure.reason, error_bytes_max));
      outcome = one(Fate::dead, Verdict::fresh, failure.reason);
    }
    if (!written) return not_ours(written.error());
    return outcome;
  });
}

Result<std::optional<DeadLetter>> Revival::take() {
  pg::Params params;
  params.text(inbox_.consumer);
  auto rows = inbox_.session.exec_prepared(inbox_.statements.dead_take, params);
  if (!rows) return failure(rows.error());
  if (rows->empty()) return std::nullopt;
  DeadLetter letter{.id = rows->integer(0, 0), .msg_id = rows->uuid(0, 7), .row = *std::move(rows)};
  const auto& row = letter.row;
  letter.record = {.topic = row.text(0, 1),
                   .partition = static_cast<std::int32_t>(row.integer(0, 2)),
                   .offset = row.integer(0, 3),
                   .key = row.text_or_null(0, 4),
                   .body = row.text_or_null(0, 5),
                   .attempt = static_cast<int>(row.integer(0, 6)) + 1};
  if (const Status read = read_headers(letter); !read) return failure(read.error());
  return letter;
}

Status Revival::read_headers(DeadLetter& letter) {
  pg::Params params;
  params.i64(letter.id);
  auto rows = inbox_.session.exec_prepared(inbox_.statements.dead_headers, params);
  if (!rows) return failure(rows.error());
  letter.header_rows = *std::move(rows);
  for (int row = 0; row < letter.header_rows.size(); ++row)
    letter.headers.push_back({letter.header_rows.text(row, 0), letter.header_rows.text_or_null(row, 1)});
  letter.record.headers = letter.headers;
  return {};
}

Result<bool> Revival::change_state(const DeadLetter& letter, ProcessedState state) {
  pg::Params params;
  params.text(inbox_.consumer).uuid(letter.msg_id).text(to_string(state));
  const auto rows = inbox_.session.exec_prepared(inbox_.statements.processed_revive, params);
  if (!rows) return failure(rows.error());
  return rows->affected() == 1;
}

Result<bool> Revival::overtaken(const Candidate& candidate) {
  if (inbox_.guard == Guard::none) return false;
  std::vector<Judgement> judgements(1);
  const auto before = Dedup(inbox_.session, inbox_.statements, inbox_.consumer)
                          .advance_seqs(chain_tops({&candidate, 1}, judgements));
  if (!before) return failure(before.error());
  judge_overtaking({&candidate, 1}, judgements, *before);
  return judgements.front().verdict == Verdict::stale;
}

Status Revival::call(const std::string& statement, std::int64_t id, std::string_view text) {
  pg::Params params;
  params.i64(id).text(text);
  const auto rows = inbox_.session.exec_prepared(statement, params);
  return rows ? Status{} : failure(rows.error());
}

}  // namespace outbox
