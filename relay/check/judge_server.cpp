#include "relay/check/judge.hpp"

namespace outbox::relay {
namespace {

constexpr std::int64_t version_needed = 150000;
constexpr double notify_queue_max = 0.1;
constexpr double hints_end_at = 0.5;  // outbox_hints_fit()

std::string seconds(std::chrono::nanoseconds t) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(t).count()) + " s";
}

Finding good(std::string check, std::string found) {
  return {std::move(check), Severity::ok, std::move(found), ""};
}

Finding version(const ServerFacts& f) {
  const std::string is =
      "PostgreSQL " + std::to_string(f.version / 10000) + "." + std::to_string(f.version % 10000);
  if (f.version >= version_needed) return good("postgres.version", is);
  return {"postgres.version", Severity::error, is + " is older than 15", "upgrade the server"};
}

Finding writable(const ServerFacts& f) {
  if (f.standby)
    return {"postgres.writable", Severity::error, "the server is a standby: it cannot record what was sent",
            "let postgres.uri name the primary, or add target_session_attrs=primary"};
  if (f.read_only)
    return {"postgres.writable", Severity::error, "transactions of this role are read-only",
            "reset default_transaction_read_only for the role, the database or the server"};
  return good("postgres.writable", "transactions can write");
}

Finding durability(const ServerFacts& f) {
  if (!f.fsync)
    return {"postgres.durability", Severity::error,
            "fsync is off: after a crash of the server, rows that were sent may never have been",
            "set fsync = on"};
  if (!f.full_page_writes)
    return {"postgres.durability", Severity::warning,
            "full_page_writes is off: a crash of the server can corrupt pages",
            "set full_page_writes = on, unless the storage writes 8 kB atomically"};
  return good("postgres.durability", "commits reach the disk");
}

Finding synchronous(const ServerFacts& f) {
  if (f.synchronous_commit != "off") return good("postgres.synchronous_commit", f.synchronous_commit);
  return {
      "postgres.synchronous_commit", Severity::warning,
      "synchronous_commit is off: applications can lose what they were told is committed, money and message "
      "together, and the relay pays an extra flush a batch to send only what is durable",
      "set synchronous_commit = on where money is written"};
}

Finding timeout(const ServerFacts& f, const config::Pipeline& p) {
  const Millis wanted{10'000};
  if (f.statement_timeout == Millis{0} || f.statement_timeout >= wanted)
    return good("postgres.statement_timeout", "no statement of the relay is cut short");
  return {"postgres.statement_timeout", Severity::warning,
          "statement_timeout is " + std::to_string(f.statement_timeout.count()) +
              " ms: a claim after a large backlog, or a mark on a busy disk, takes longer and is repeated "
              "forever",
          "ALTER ROLE … SET statement_timeout = 0; postgres.statement_deadline (" +
              seconds(p.postgres.statement_deadline) + ") bounds the relay's statements already"};
}

Finding clock(const ServerFacts& f, const JudgeLimits& limits) {
  if (std::chrono::abs(f.clock_ahead) <= limits.clock_difference)
    return good("postgres.clock", "the server's clock and this machine's agree");
  return {"postgres.clock", Severity::warning,
          "the server's clock is " + seconds(std::chrono::abs(f.clock_ahead)) +
              (f.clock_ahead.count() > 0 ? " ahead of" : " behind") + " this machine's",
          "let both follow NTP: leases do not depend on it, but latencies, schedules and record times do"};
}

Finding pooler(const ServerFacts& f, const config::Pipeline& p) {
  if (!f.pooled) return good("postgres.pooler", "connected to the server itself");
  if (p.source.mode == config::Mode::notify)
    return {"postgres.pooler", Severity::warning,
            "the connection leads through a pooler: in transaction mode no notification arrives, and each "
            "row waits for "
            "the next poll",
            "connect to the server itself, or set source.mode: poll"};
  return good("postgres.pooler", "through a pooler, as the options allow");
}

Finding transactions(const ServerFacts& f, const JudgeLimits& limits) {
  const std::string grant =
      f.sees_others ? "" : "GRANT pg_read_all_stats to the role to see other roles' transactions";
  if (f.oldest_transaction && *f.oldest_transaction > limits.transaction_age)
    return {"postgres.old_transaction", Severity::warning,
            "a transaction is open for " + seconds(*f.oldest_transaction) +
                ": vacuum and the cleaning of index entries wait for it, and every claim reads the dead ones",
            "find it in pg_stat_activity and end it; set idle_in_transaction_session_timeout"};
  if (f.prepared_transactions > 0)
    return {"postgres.old_transaction", Severity::warning,
            std::to_string(f.prepared_transactions) + " prepared transactions are older than 5 minutes",
            "COMMIT PREPARED or ROLLBACK PREPARED them"};
  if (!f.sees_others)
    return {"postgres.old_transaction", Severity::note, "other roles' transactions cannot be seen", grant};
  return good("postgres.old_transaction", "no transaction holds vacuum back");
}

Finding slots(const ServerFacts& f) {
  if (f.idle_slots.empty()) return good("postgres.idle_slots", "no replication slot is idle");
  return {"postgres.idle_slots", Severity::warning,
          "replication slots without a reader keep WAL until the disk is full: " + f.idle_slots,
          "start their readers, or pg_drop_replication_slot() them"};
}

Finding wal_level(const ServerFacts& f) {
  if (f.wal_level != "minimal") return good("postgres.wal_level", f.wal_level);
  return {"postgres.wal_level", Severity::warning,
          "wal_level is minimal: there can be neither a standby nor a recovery to a point in time, of the "
          "outbox and of the money beside it",
          "set wal_level = replica"};
}

Finding replication(const ServerFacts& f) {
  if (f.standbys_wanted.empty()) return good("postgres.replication", "no commit waits for a standby");
  if (f.standbys_in_sync > 0)
    return good("postgres.replication", std::to_string(f.standbys_in_sync) + " standbys confirm commits");
  if (!f.sees_others)
    return {"postgres.replication", Severity::note,
            "whether the standbys of synchronous_standby_names are there cannot be seen",
            "GRANT pg_read_all_stats to the role"};
  return {"postgres.replication", Severity::error,
          "synchronous_standby_names is '" + f.standbys_wanted +
              "' and no such standby is connected: every commit "
              "waits, the applications' and the relay's marks",
          "bring the standby back, or take it out of synchronous_standby_names"};
}

Finding notify_queue(const ServerFacts& f) {
  const std::string is = "the server's queue of notifications is " +
                         std::to_string(static_cast<int>(f.notify_queue * 100)) + " % full";
  if (f.notify_queue < notify_queue_max) return good("postgres.notify_queue", is);
  return {
      "postgres.notify_queue", f.notify_queue < hints_end_at ? Severity::warning : Severity::error,
      is + ": from 50 % on inserts send no hint, so that no COMMIT fails for one, and rows wait for the next "
           "poll; at 100 % every other NOTIFY of the server fails",
      "a session that listens holds it up with a long transaction: pg_stat_activity shows it; end it"};
}

Finding role(const ServerFacts& f) {
  if (!f.superuser) return good("postgres.role", "no superuser");
  return {"postgres.role", Severity::warning,
          "the relay connects as a superuser, and needs a handful of grants only",
          "`outboxd migrate --grants`, then connect as outbox_relay"};
}

}  // namespace

Findings judge_server(const ServerFacts& facts, const config::Pipeline& pipeline, const JudgeLimits& limits) {
  return {version(facts),
          writable(facts),
          durability(facts),
          synchronous(facts),
          timeout(facts, pipeline),
          clock(facts, limits),
          pooler(facts, pipeline),
          transactions(facts, limits),
          slots(facts),
          wal_level(facts),
          replication(facts),
          notify_queue(facts),
          role(facts)};
}

}  // namespace outbox::relay
