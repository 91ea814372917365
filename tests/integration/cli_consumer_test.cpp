// `outboxd consumer …` on a real database.

#include <doctest/doctest.h>

#include <algorithm>

#include "cli.hpp"
#include "sql_fixture.hpp"

namespace outbox {
namespace {

using test::ask;
using test::OutboxDatabase;

}  // namespace

TEST_CASE("outboxd consumer maintain drops the days that every consumer may forget, and says what it did") {
  OutboxDatabase service;
  const test::CliFolder folder;
  ask(service.sql(),
      "SELECT outbox_make_partition('processed_msgs', 'processed_msgs_default', "
      "(now() AT TIME ZONE 'UTC')::date - n, 'fillfactor = 100') FROM generate_series(2, 9) n");
  const auto done = folder.outboxd({"consumer", "maintain", "--uri", service.uri()});
  CHECK(done.status.code == 0);
  // Nobody has rows in them: the days that ended two days ago or earlier.
  CHECK(done.output == "0 partitions made, 7 dropped, 0 rows purged\n");
  const auto again = folder.outboxd({"consumer", "maintain", "--uri", service.uri()});
  CHECK(again.output == "0 partitions made, 0 dropped, 0 rows purged\n");
}

TEST_CASE(
    "outboxd consumer purge forgets old ids without a time, keeps what waits and what has one, and says "
    "why") {
  OutboxDatabase service;
  const test::CliFolder folder;
  // 1 to 5 without a time: old; of another consumer; young; dead; old. The sixth has a time.
  ask(service.sql(),
      "INSERT INTO processed_msgs (consumer, msg_id, id_time, state, payload_sha256, topic, partition, "
      "\"offset\", "
      "processed_at) SELECT v.consumer, v.id::uuid, outbox_id_time(v.id::uuid), v.state, sha256('x'), 't', "
      "0, 0, v.at "
      "FROM (VALUES ('c', '11111111-0000-4000-8000-000000000001', 'applied', now() - interval '9 days'), "
      "('d', '22222222-0000-4000-8000-000000000001', 'applied', now() - interval '9 days'), "
      "('c', '33333333-0000-4000-8000-000000000001', 'applied', now()), "
      "('c', '44444444-0000-4000-8000-000000000001', 'dead', now() - interval '9 days'), "
      "('c', '55555555-0000-4000-8000-000000000001', 'discarded', now() - interval '9 days'), "
      "('c', outbox_uuid_v7()::text, 'applied', now() - interval '9 days')) v (consumer, id, state, at)");
  const auto purge = [&](std::vector<std::string> more) {
    std::vector<std::string> args{"consumer", "purge",     "--uri",    service.uri(), "--consumer", "c",
                                  "--before", "yesterday", "--reason", "disk",        "--by",       "tester"};
    args.insert(args.end(), more.begin(), more.end());
    return folder.outboxd(args);
  };
  CHECK(purge({"--dry-run"}).output == "c: would forget 2 ids without a time\n");
  CHECK(ask(service.sql(), "SELECT count(*) FROM processed_msgs") == "6");
  const auto done = purge({});
  CHECK_MESSAGE(done.output == "c: forgot 2 ids without a time\n", done.errors);
  CHECK(ask(service.sql(), "SELECT left(msg_id::text, 8) FROM processed_msgs_timeless ORDER BY 1") ==
        "22222222 33333333 44444444");
  CHECK(ask(service.sql(), "SELECT count(*) FROM processed_msgs") == "4");
  CHECK(ask(service.sql(), "SELECT action, rows, person, reason FROM outbox_operation") ==
        "purge|2|tester|disk");
}

TEST_CASE("outboxd consumer says what to do where the tables are missing, and needs to know the database") {
  const test::TestDatabase empty;
  const test::CliFolder folder;
  const auto missing = folder.outboxd({"consumer", "maintain", "--uri", empty.uri()});
  CHECK(missing.status.code == 4);
  CHECK(missing.errors.find("outboxd migrate") != std::string::npos);
  CHECK(folder.outboxd({"consumer", "maintain"}).status.code == 2);
}

TEST_CASE("outboxd consumer dead lists, shows, retries and discards what a consumer could not apply") {
  OutboxDatabase service;
  const test::CliFolder folder;
  const auto dead = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"consumer", "dead"});
    args.insert(args.end(), {"--uri", service.uri()});
    return folder.outboxd(args);
  };
  for (const auto* n : {"1", "2", "3"}) {
    const std::string begun = std::string("'ledger', '0193a8c0-1c2d-7000-8000-00000000000")
                                  .append(n)
                                  .append("', sha256('a'), 't', 0, ")
                                  .append(n)
                                  .append(", 'k'");
    const std::string how = *n == '1' ? "failed" : "parked";
    const std::string kept = R"(, 'a', '[["h", "v"]]', ')" + how + "', 'no account')";
    ask(service.sql(), "SELECT inbox_begin(" + begun + ")");
    ask(service.sql(), "SELECT inbox_park(" + begun + kept);
  }
  const auto listed = dead({"list", "--consumer", "ledger"});
  CHECK(listed.status.code == 0);
  CHECK(std::ranges::count(listed.output, '\n') == 3);
  CHECK(listed.output.find(
            "id=1 consumer=ledger msg_id=0193a8c0-1c2d-7000-8000-000000000001 topic=t partition=0 "
            "offset=1") == 0);
  CHECK(listed.output.find("verdict=failed attempts=1") != std::string::npos);
  CHECK(dead({"list", "--consumer", "other"}).output.empty());
  const auto page = dead({"list", "--limit", "1", "--after", "1"});
  CHECK(page.output.find("id=2 ") == 0);
  CHECK(page.output.find("more: --after 2") != std::string::npos);

  const auto shown = dead({"show", "2"});
  CHECK(shown.output.find("\"body\": \"a\"") != std::string::npos);
  CHECK(dead({"show", "99"}).status.code == 1);

  CHECK(dead({"retry", "2"}).output.find("2: ") == 0);
  CHECK(ask(service.sql(), "SELECT retry_at IS NOT NULL FROM inbox_parked_key") == "t");
  CHECK(dead({"list"}).output.find("\"retry wanted\"") != std::string::npos);
  CHECK(dead({"discard", "1", "3", "--reason", "agreed"}).status.code == 0);
  CHECK(dead({"discard", "1", "--reason", "again"}).status.code == 1);
  CHECK(dead({"discard", "2"}).status.code == 2);
  CHECK(std::ranges::count(dead({"list"}).output, '\n') == 1);
  CHECK(dead({"list", "--all"}).output.find("agreed") != std::string::npos);
}

TEST_CASE("a consumer's role may do its work, and neither forget by hand nor drop") {
  OutboxDatabase service;
  auto consumer = service.with_roles().as("outbox_consumer");
  CHECK(test::refusal(consumer, "SELECT inbox_register('ledger', interval '30 days')") == "accepted");
  CHECK(test::refusal(consumer, "SELECT inbox_maintain()") == "accepted");
  CHECK(test::refusal(consumer,
                      "SELECT inbox_begin('ledger', gen_random_uuid(), sha256(''), 't', 0, 0, 'k', 1)") ==
        "accepted");
  CHECK(test::refusal(consumer, "SELECT count(*) FROM inbox_dead_take('ledger')") == "accepted");
  CHECK(test::refusal(consumer, "SELECT inbox_dead_discard(1, 'x')") == "42501");
  auto operating = service.as("outbox_operator");
  CHECK(test::refusal(operating, "SELECT inbox_dead_discard(1, 'x')") == "accepted");
  CHECK(test::refusal(operating, "SELECT inbox_dead_retry(1)") == "accepted");
  CHECK(test::refusal(consumer, "SELECT inbox_forget('processed_msgs_timeless', now())") == "42501");
  CHECK(test::refusal(consumer, "SELECT inbox_purge('ledger', now())") == "42501");
  CHECK(test::refusal(consumer, "DELETE FROM processed_msgs") == "42501");
  CHECK(test::refusal(consumer, "SELECT inbox_register('ledger', interval '1 day')") == "23514");
}

}  // namespace outbox
