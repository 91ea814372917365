// The upkeep of a table by the instance that has lane 0: days ahead, old days, the DEFAULT partition, plain
// tables.

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/contract/postgres_world.hpp"

using namespace outbox;
using namespace outbox::test;
using relay::UpkeepNote;

namespace {

using Event = UpkeepNote::Event;

struct Tended {
  explicit Tended(relay::UpkeepOptions upkeep = {}) {
    upkeep.every = Millis{100};
    upkeep.erase_pause = Millis{1};
    upkeep.on_note = [this](const UpkeepNote& note) { notes.push_back(note); };
    PostgresWorldOptions options;
    options.upkeep = upkeep;
    world = std::make_unique<PostgresWorld>(std::move(options));
  }
  // The relay renews its lease all the time; a round begins with that.
  void renew(const std::string& owner = "one") {
    world->source().lease({owner, 8, Millis{5000}, 0}, [](const auto&) {});
  }
  void until(const std::function<bool()>& done) {
    std::string told;
    try {
      world->pump([&] {
        renew();
        world->pass(Millis{5});
        return done();
      });
    } catch (const std::exception& e) {
      for (const UpkeepNote& note : notes)
        told += std::to_string(static_cast<int>(note.event)) + " " + note.table + " " + note.why + "\n";
      throw std::runtime_error(std::string(e.what()) + "; the upkeep told:\n" + told);
    }
  }
  [[nodiscard]] std::int64_t told(Event event) const {
    return std::ranges::count(notes, event, &UpkeepNote::event);
  }
  void old_day() {
    world->sql(
        "SELECT {{schema}}.outbox_make_partition('{{table}}', '\"public\".\"outbox_msg_default\"', (now() AT "
        "TIME ZONE 'UTC')::date - 30, 'fillfactor = 50')");
    insert("SENT", "30 days");
  }
  void insert(const std::string& status, const std::string& ago, int rows = 1) {
    world->sql("INSERT INTO {{table}} (topic, status, created_at, sent_at) SELECT 't', '" + status +
               "', now() - interval '" + ago + "', now() - interval '" + ago + "' FROM generate_series(1, " +
               std::to_string(rows) + ")");
  }
  std::string rows() const { return world->sql("SELECT count(*) FROM {{table}}"); }
  std::string days() const {
    return world->sql("SELECT count(*) FROM pg_inherits WHERE inhparent = '{{table}}'::regclass");
  }

  std::vector<UpkeepNote> notes;
  std::unique_ptr<PostgresWorld> world;
};

}  // namespace

TEST_CASE("the owner of lane 0 makes the days ahead and drops the old ones that nothing keeps") {
  Tended t({.partitions_ahead = 12});
  t.old_day();
  t.until([&] { return t.told(Event::day_dropped) == 1; });
  CHECK(t.told(Event::partitions_made) == 1);
  CHECK(t.days() == "15");  // yesterday, today, 12 ahead and DEFAULT
  const relay::UpkeepFigures figures = t.world->source().upkeep();
  CHECK(figures.partitions_made > 0);
  CHECK(figures.days_dropped == 1);
  CHECK(figures.failed == 0);
  CHECK(t.rows() == "0");
}

TEST_CASE("a replay window of less than a day does not make and drop yesterday again and again") {
  Tended t({.replay_window = std::chrono::hours{1}});
  t.old_day();
  for (int round = 0; round < 2; ++round) {
    t.old_day();
    t.until([&] { return t.rows() == "0" && t.told(Event::day_dropped) > round; });
  }
  CHECK(t.told(Event::day_dropped) == 2);
  CHECK(t.days() == "10");  // yesterday, today, 7 ahead and DEFAULT
  CHECK(t.told(Event::partitions_made) == 0);
}

TEST_CASE("a day with a dead row stays, and that is told once") {
  Tended t;
  t.old_day();
  t.insert("DEAD", "30 days");
  t.until([&] { return t.told(Event::day_kept) > 0; });
  t.world->sql("CREATE TABLE rounds AS SELECT now() AS began");
  for (int round = 0; round < 3; ++round) {
    t.world->pass(Millis{100});
    t.renew();
  }
  t.world->pass(Millis{200});
  CHECK(t.told(Event::day_kept) == 1);
  CHECK(t.rows() == "2");
  t.world->sql("UPDATE {{table}} SET status = 'DISCARDED'");
  t.until([&] { return t.told(Event::day_dropped) == 1; });
}

TEST_CASE("the replay window is respected, and keep removes nothing") {
  Tended wide({.replay_window = std::chrono::days{31}});
  wide.old_day();
  Tended keeps({.old_rows = relay::OldRows::keep});
  keeps.old_day();
  for (Tended* t : {&wide, &keeps}) {
    t->until([&] { return t->told(Event::partitions_made) >= 0; });
    for (int round = 0; round < 3; ++round) {
      t->renew();
      t->world->pass(Millis{120});
    }
    CHECK(t->told(Event::day_dropped) == 0);
    CHECK(t->rows() == "1");
  }
}

TEST_CASE("the DEFAULT partition is emptied: old settled rows go, and what a day is made for moves there") {
  Tended t({.partitions_ahead = 9, .erase_blocks = 4});
  t.insert("SENT", "30 days", 2000);
  t.insert("PENDING", "30 days");
  t.insert("PENDING", "-9 days", 5);  // nine days ahead, for which there is no day yet
  t.insert("SENT", "3 days");
  t.until([&] { return t.told(Event::rows_deleted) > 0 && t.told(Event::default_used) > 0; });
  CHECK(t.world->sql("SELECT string_agg(status || '|' || (tableoid::regclass = "
                     "'outbox_msg_default'::regclass), ' ' ORDER BY created_at) FROM {{table}}") ==
        "PENDING|true SENT|true PENDING|false PENDING|false PENDING|false PENDING|false PENDING|false");
  t.world->sql(
      "UPDATE {{table}} SET status = 'SENT', created_at = now() - interval '30 days', sent_at = now() - "
      "interval '30 days' WHERE tableoid = 'outbox_msg_default'::regclass");
  t.until([&] { return t.told(Event::default_empty) > 0; });
  CHECK(t.rows() == "5");
}

TEST_CASE("where the DEFAULT partition is large no day is made until an operator does it") {
  Tended t({.partitions_ahead = 12, .default_bytes_max = 8192});
  t.insert("PENDING", "3 days", 500);
  t.until([&] { return t.told(Event::default_large) > 0; });
  CHECK(t.told(Event::partitions_made) == 0);
  CHECK(t.days() == "10");
}

TEST_CASE("a table without partitions loses its old settled rows in small batches, and keeps the others") {
  Tended t({.erase_blocks = 2});
  t.world->sql("CREATE TABLE plain (LIKE {{table}} INCLUDING ALL)");
  t.world->sql("DROP TABLE {{table}} CASCADE");
  t.world->sql("ALTER TABLE plain RENAME TO outbox_msg");
  t.world->sql("GRANT SELECT, UPDATE, DELETE ON {{table}} TO outbox_relay");
  t.insert("SENT", "8 days", 3000);
  t.insert("CANCELLED", "8 days", 2);
  for (const char* status : {"PENDING", "HELD", "DEAD"}) t.insert(status, "8 days");
  t.insert("SENT", "6 days", 4);
  t.until([&] { return t.rows() == "7"; });
  CHECK(t.world->sql("SELECT string_agg(DISTINCT status, ' ') FROM {{table}}") == "DEAD HELD PENDING SENT");
}

TEST_CASE("who has not lane 0 touches nothing") {
  Tended t;
  t.old_day();
  t.world->sql("SELECT {{schema}}.outbox_lanes_keep('public.outbox_msg', 'another', 8, '1 hour')");
  for (int round = 0; round < 5; ++round) {
    t.renew();
    t.world->pass(Millis{120});
  }
  CHECK(t.rows() == "1");
  CHECK(t.notes.empty());
}

TEST_CASE("a lock that is not had in time puts the drop off, and it comes to pass later") {
  Tended t;
  t.old_day();
  auto business = t.world->database().session();
  must(business.exec_script("BEGIN; INSERT INTO outbox_msg (topic) VALUES ('open')"));
  t.until([&] { return t.told(Event::busy) > 0; });
  CHECK(t.told(Event::day_dropped) == 0);
  must(business.exec_script("COMMIT"));
  t.until([&] { return t.told(Event::day_dropped) == 1; });
  CHECK(t.told(Event::failed) == 0);
}
