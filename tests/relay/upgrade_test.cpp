// An upgrade of the schema under relays at work: a migration that this program does not know is applied, as the next version's
// `outboxd migrate` would. No next version exists, so what its relay would do to the shared tables is done here in SQL: it calls its
// own form of outbox_lanes_keep.

#include "tests/relay/numbered.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

// What a migration may do: add. Columns, with defaults; an index; another form of a function beside the one that is called.
constexpr std::string_view next_migration = R"(
ALTER TABLE {{table}} ADD COLUMN priority smallint NOT NULL DEFAULT 0;
ALTER TABLE {{schema}}.outbox_instance ADD COLUMN zone text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE {{schema}}.outbox_lease ADD COLUMN zone text COLLATE "C";
CREATE INDEX ON {{schema}}.outbox_hold (since);
CREATE FUNCTION {{schema}}.outbox_lanes_keep(
  of_source text, claimant text, lane_count int, ttl interval, rate real, delivers text, stands_still text, in_zone text)
RETURNS TABLE (lane smallint, epoch bigint, owner text, share int)
LANGUAGE plpgsql VOLATILE
AS $outbox$
#variable_conflict use_column
BEGIN
  RETURN QUERY SELECT k.lane, k.epoch, k.owner, k.share
    FROM {{schema}}.outbox_lanes_keep(of_source, claimant, lane_count, ttl, rate, delivers, stands_still) k;
  UPDATE {{schema}}.outbox_instance i SET zone = in_zone WHERE i.source = of_source AND i.instance = claimant;
END
$outbox$;
)";

relay::MigrationSets next_version() {
  auto sets = relay::migration_sets();
  const auto outbox = std::ranges::find(sets, "outbox", &relay::MigrationSet::name);
  outbox->migrations.push_back({.number = static_cast<int>(outbox->migrations.size()) + 1,
                                .name = "zones",
                                .checksum = "of the next version",
                                .text = next_migration});
  return sets;
}

std::string dealt(RelayRig& rig) {
  return rig.ask(
      "SELECT owner || ' ' || count(*) FROM outbox_lease WHERE owner IS NOT NULL AND lease_until > now() "
      "GROUP BY owner ORDER BY owner");
}

// As an instance of the next version renews its lanes; how many it has.
std::string next_keeps(RelayRig& rig) {
  return rig.ask(
      "SELECT count(*) FILTER (WHERE owner = 'next/rig') FROM outbox_lanes_keep('public.outbox_msg', "
      "'next/rig', "
      "8, '1 minute', 0, 'at_least_once', '', 'north')");
}

}  // namespace

TEST_CASE(
    "a next migration is applied under two relays at work, one of either version shares the lanes with the "
    "other, and back: nothing is lost, doubled or out of order") {
  RelayRig rig;
  KafkaCluster& kafka = KafkaCluster::shared();
  const std::string topic = kafka.new_topic("upgraded", 3);
  rig.start({.instance = "a"});
  rig.start({.instance = "b"});
  rig.await("two relays share the lanes", [&] { return dealt(rig) == "a/rig 4 b/rig 4"; });
  insert_numbered(rig, topic, 1, 3000);
  rig.await("they are at work", [&] { return rig.count("SENT") != "0"; });

  const auto sets = next_version();
  auto owner = must(pg::Session::connect({.uri = rig.uri()}));
  const auto report = must(relay::migrate(owner, {.known = &sets}));
  CHECK(report.applied == std::vector<std::string>{"outbox/zones"});
  insert_numbered(rig, topic, 3001, 4000);
  rig.eventually_none_pending();

  // The next version comes and takes its share; rows of its lanes wait for it, the others' go on.
  next_keeps(rig);
  rig.await("the next version has its share", [&] { return next_keeps(rig) == "2"; });
  CHECK(rig.ask("SELECT zone FROM outbox_instance ORDER BY instance") == "  north");
  insert_numbered(rig, topic, 4001, 5000);
  rig.await("only rows of the next version's lanes wait", [&] {
    return rig.ask(
               "SELECT count(*) FROM outbox_msg m JOIN outbox_lease l ON l.lane = m.shard % 8 WHERE m.status "
               "= "
               "'PENDING' AND l.owner <> 'next/rig'") == "0";
  });
  // Back: its lanes go to the relays of this version, and one that is started now finds its way in the newer tables, too.
  rig.ask("SELECT outbox_lanes_give('public.outbox_msg', 'next/rig', '{}', '{}', true)");
  rig.start({.instance = "c"});
  rig.await("three relays of this version share the lanes",
            [&] { return dealt(rig) == "a/rig 3 b/rig 3 c/rig 2"; });
  insert_numbered(rig, topic, 5001, 6000);
  rig.eventually_none_pending();
  CHECK(complete_and_in_order(kafka, topic, 6000) == 0);

  CHECK(rig.outboxd({"migrate"}).errors.find("migration 5 of outbox (zones), this program knows 4") !=
        std::string::npos);
  const auto checked = rig.outboxd({"check"});
  CHECK_MESSAGE(
      (checked.output + checked.errors).find("outbox 5 is newer than this program's 4") != std::string::npos,
      checked.output);
}
