#include "relay/check/judge.hpp"

namespace outbox::relay {
namespace {

constexpr std::int64_t default_partition_bytes_max = 1 << 20;

Finding good(std::string check, std::string found) {
  return {std::move(check), Severity::ok, std::move(found), ""};
}

using Numbers = std::map<std::string, std::int64_t>;

// What a relay cannot do without; other sets are judged where they are.
bool needs(const std::string& set) {
  return set == "shared" || set == "outbox";
}

Finding migration(const TableFacts& f, const Numbers& newest) {
  std::string behind;
  std::string ahead;
  std::string is;
  for (const auto& [set, known] : newest) {
    const auto found = f.migrations.find(set);
    if (found == f.migrations.end() && !needs(set)) continue;
    const std::int64_t number = found == f.migrations.end() ? 0 : found->second;
    const std::string here = set + " " + std::to_string(number);
    is += (is.empty() ? "" : ", ") + here;
    if (number < known) behind = here + ", and this program knows " + std::to_string(known);
    if (number > known) ahead = here + " is newer than this program's " + std::to_string(known);
  }
  if (!behind.empty())
    return {"table.migration", Severity::error, behind,
            "run `outboxd migrate` as the table's owner; it is safe under load"};
  if (!ahead.empty()) return {"table.migration", Severity::error, ahead, "upgrade outboxd"};
  return good("table.migration", is);
}

Finding sequence(const TableFacts& f) {
  if (f.sequence_cache == 1) return good("table.sequence_cache", "ids rise in the order of inserts");
  if (f.sequence_cache == 0)
    return {"table.sequence_cache", Severity::error, "no sequence gives the ids",
            "`outboxd migrate` makes one"};
  return {"table.sequence_cache", Severity::error,
          "the id's sequence has CACHE " + std::to_string(f.sequence_cache) +
              ": each session takes ids ahead, so that a key's later message can get a smaller id and be "
              "sent first",
          "ALTER SEQUENCE … CACHE 1"};
}

Finding indexes(const TableFacts& f) {
  if (f.indexes_missing.empty()) return good("table.indexes", "all there and valid");
  return {"table.indexes", Severity::error, "missing or invalid: " + f.indexes_missing,
          "CREATE INDEX CONCURRENTLY as sql/migrations/outbox/0001_outbox.sql has them: without, every claim "
          "reads "
          "the table"};
}

Finding wake(const TableFacts& f, const config::Pipeline& p) {
  if (p.source.mode == config::Mode::poll || f.wakes)
    return good("table.wake_trigger", "as the mode needs it");
  return {"table.wake_trigger", Severity::warning,
          "source.mode is notify, and the trigger outbox_wake is missing or disabled: each row waits for the "
          "next poll",
          "ALTER TABLE … ENABLE TRIGGER outbox_wake, or set source.mode: poll"};
}

Finding vacuum(const TableFacts& f) {
  if (f.unvacuumed.empty()) return good("table.autovacuum", "on");
  return {"table.autovacuum", Severity::warning, "autovacuum is off for " + f.unvacuumed,
          "ALTER TABLE … RESET (autovacuum_enabled): a mark leaves a dead row each time"};
}

// In the last hour of a day whole hours would say 0, and be taken for none.
std::string hours_or_minutes(Millis ahead) {
  using namespace std::chrono;
  if (abs(ahead) >= hours{1}) return std::to_string(duration_cast<hours>(ahead).count()) + " hours";
  return std::to_string(duration_cast<minutes>(ahead).count()) + " minutes";
}

Finding partitions(const TableFacts& f, const JudgeLimits& limits) {
  if (!f.partitions_ahead)
    return {"table.partitions_ahead", Severity::note,
            "the table has no partitions by day: old rows can only be deleted", ""};
  const std::string is = "partitions reach " + hours_or_minutes(*f.partitions_ahead) + " ahead";
  if (*f.partitions_ahead >= limits.partitions_ahead) return good("table.partitions_ahead", is);
  return {"table.partitions_ahead", *f.partitions_ahead <= Millis{0} ? Severity::error : Severity::warning,
          is + ": rows of later days go to the DEFAULT partition",
          "a running relay makes them every hour: is one running, and may it? By hand: "
          "`outboxd migrate`"};
}

Finding fallback(const TableFacts& f) {
  if (f.default_partition_bytes <= default_partition_bytes_max)
    return good("table.default_partition", "(nearly) empty");
  return {
      "table.default_partition", Severity::warning,
      "the DEFAULT partition holds " + std::to_string(f.default_partition_bytes) + " bytes",
      "in a quiet hour SELECT outbox_ensure_partitions(7, 10000000), until it answers 0, moves rows of the "
      "days to come; older ones are moved by hand"};
}

Finding lanes(const TableFacts& f, const config::Pipeline& p) {
  if (f.lanes_leased == 0)
    return {"table.lanes", Severity::note, "no relay owns the lanes now", "start one: `outboxd run`"};
  if (f.lanes_leased == p.source.lanes)
    return good("table.lanes", std::to_string(f.lanes_leased) + " lanes, leased");
  return {"table.lanes", Severity::error,
          "the present owner deals " + std::to_string(f.lanes_leased) + " lanes, source.lanes here is " +
              std::to_string(p.source.lanes),
          "give every instance of the pipeline the same source.lanes"};
}

Finding dead(const TableFacts& f) {
  if (f.dead == 0) return good("table.dead", "no message is dead");
  return {"table.dead", Severity::warning, std::to_string(f.dead) + " dead messages wait for an operator",
          "`outboxd dead list` says why; mend that, then `outboxd dead retry`, or `outboxd dead discard`"};
}

Finding holds(const TableFacts& f) {
  if (f.holds == 0) return good("table.holds", "nothing is on hold");
  return {"table.holds", Severity::note,
          std::to_string(f.holds) + " holds: keys, topics, or the whole pipeline",
          "`outboxd status` names the oldest with their reasons"};
}

}  // namespace

Findings judge_table(const TableFacts& facts, const config::Pipeline& pipeline, const Numbers& newest,
                     const JudgeLimits& limits) {
  return {migration(facts, newest),
          sequence(facts),
          indexes(facts),
          wake(facts, pipeline),
          vacuum(facts),
          partitions(facts, limits),
          fallback(facts),
          lanes(facts, pipeline),
          dead(facts),
          holds(facts)};
}

}  // namespace outbox::relay
