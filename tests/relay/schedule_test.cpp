// Scheduled messages: many at once, and none that an application was told is cancelled.

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>

#include "tests/relay/rig.hpp"

using namespace outbox;
using namespace outbox::test;

TEST_CASE(
    "a hundred thousand messages due in the same second go out when it comes, in order, and keep others "
    "waiting seconds at most") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("due", 3);
  rig.start();
  rig.ask(
      "INSERT INTO outbox_msg (topic, msg_key, body, available_at) SELECT $1, (i % 500)::text, to_json(i), "
      "date_trunc('second', now()) + interval '8 s' FROM generate_series(1, 100000) i",
      pg::Params{}.text(topic));
  rig.ask("INSERT INTO outbox_msg (topic, msg_key, body) VALUES ($1, 'now', '0')", pg::Params{}.text(topic));
  rig.await("what is not scheduled is sent at once", [&] { return rig.count("SENT") == "1"; });
  rig.await("they come due", [&] { return rig.count("SENT") != "1"; });
  rig.ask("INSERT INTO outbox_msg (topic, msg_key, body) VALUES ($1, 'now', '1')", pg::Params{}.text(topic));
  rig.await(
      "the one between them is sent",
      [&] {
        return rig.ask("SELECT status FROM outbox_msg WHERE msg_key = 'now' ORDER BY id DESC LIMIT 1") ==
               "SENT";
      },
      Millis{10'000});
  rig.eventually_none_pending(Millis{90'000});
  const auto due =
      std::stoll(rig.ask("SELECT (extract(epoch FROM max(available_at)) * 1000)::bigint FROM outbox_msg"));
  std::map<std::string, int> last;
  std::set<int> seen;
  for (const KafkaRecord& r : KafkaCluster::shared().read_all(topic)) {
    if (*r.key == "now") continue;
    CHECK(r.timestamp.time_since_epoch().count() >= due);
    const int number = std::stoi(*r.body);
    if (!seen.insert(number).second) continue;
    CHECK(number > last[*r.key]);
    last[*r.key] = number;
  }
  CHECK(seen.size() == 100'000);
}

TEST_CASE(
    "of a ladder of five queries those that are cancelled are not sent, and those that were sent are not "
    "called cancelled") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("ladder");
  rig.start();
  must(rig.sql().exec("BEGIN"));
  for (const char* after : {"1 second", "2 seconds", "5 minutes", "30 minutes", "4 hours"})
    rig.ask("SELECT outbox_publish($1, 'payment-7', to_json($2::text), '{}', now() + $2::interval)",
            pg::Params{}.text(topic).text(after));
  must(rig.sql().exec("COMMIT"));
  rig.await("the first two queries were made", [&] { return rig.count("SENT") == "2"; });
  // The payment's state is known now: the rest of the ladder is cancelled.
  CHECK(rig.ask("SELECT outbox_cancel(msg_id) FROM outbox_msg ORDER BY id") ==
        "may be sent may be sent cancelled cancelled cancelled");
  CHECK(rig.ask("SELECT outbox_cancel(msg_id) FROM outbox_msg ORDER BY id") ==
        "may be sent may be sent cancelled cancelled cancelled");
  rig.ask("INSERT INTO outbox_msg (topic, msg_key, body) VALUES ($1, 'payment-7', '\"settled\"')",
          pg::Params{}.text(topic));
  rig.eventually_none_pending();
  CHECK(bodies_of(KafkaCluster::shared().read_all(topic), "payment-7") ==
        std::vector<std::string>{"\"1 second\"", "\"2 seconds\"", "\"settled\""});
  CHECK(rig.count("CANCELLED") == "3");
}

TEST_CASE(
    "after a pause with more rows due than one claim brings, no plain row passes a scheduled one of its "
    "key") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("due-cut", 4);
  constexpr int accounts = 3000;  // a look brings 500
  rig.ask(
      "INSERT INTO outbox_msg (topic, msg_key, body, available_at) SELECT $1, 'account-' || i, "
      "to_json('capture'::text), clock_timestamp() + i * interval '0.1 ms' FROM generate_series(1, $2::int) "
      "i",
      pg::Params{}.text(topic).i32(accounts));
  rig.await("they are due",
            [&] { return rig.ask("SELECT max(available_at) < clock_timestamp() FROM outbox_msg") == "t"; });
  rig.ask(
      "INSERT INTO outbox_msg (topic, msg_key, body) SELECT $1, 'account-' || i, to_json('closed'::text) "
      "FROM generate_series($2::int - 99, $2::int) i",
      pg::Params{}.text(topic).i32(accounts));
  rig.start();
  rig.eventually_none_pending();
  const auto records = KafkaCluster::shared().read_all(topic);
  for (int i = accounts - 99; i <= accounts; ++i)
    CHECK(bodies_of(records, "account-" + std::to_string(i)) ==
          std::vector<std::string>{"\"capture\"", "\"closed\""});
}

TEST_CASE(
    "a scheduled row that a cancel has locked keeps its place in its key, whether the cancel is rolled back "
    "or "
    "says it may be sent") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("cancel-lock", 1);
  rig.start();
  auto app = must(pg::Session::connect({.uri = rig.uri()}));
  for (const auto& [key, ahead, answer] :
       {std::tuple{"near", "1 s", "may be sent"}, std::tuple{"far", "5.5 s", "cancelled"}}) {
    CAPTURE(key);
    const auto insert = [&](const char* body, const char* when) {
      rig.ask(
          "INSERT INTO outbox_msg (topic, msg_key, body, available_at) VALUES ($1, $2, to_json($3::text), "
          "now() + $4::interval)",
          pg::Params{}.text(topic).text(key).text(body).text(when));
    };
    insert("1", ahead);
    must(app.exec("BEGIN"));
    CHECK(ask(app, "SELECT outbox_cancel(msg_id) FROM outbox_msg WHERE msg_key = $1",
              pg::Params{}.text(key)) == answer);
    rig.await("it is due",
              [&] { return rig.ask("SELECT max(available_at) < clock_timestamp() FROM outbox_msg") == "t"; });
    rig.ask("INSERT INTO outbox_msg (topic, msg_key, body) VALUES ($1, $2, to_json('2'::text))",
            pg::Params{}.text(topic).text(key));
    insert("3", "0 s");
    const std::string other = std::string{key} + "-other";
    rig.ask("INSERT INTO outbox_msg (topic, msg_key, body) VALUES ($1, $2, '0')",
            pg::Params{}.text(topic).text(other));
    rig.await("another key goes on", [&] {
      return rig.ask("SELECT status FROM outbox_msg WHERE msg_key = $1", pg::Params{}.text(other)) == "SENT";
    });
    if (std::string_view{answer} == "cancelled") {
      rig.await("it is said", [&] { return rig.logs().find("due_row_locked") != std::string::npos; });
      CHECK(rig.ask("SELECT count(*) FROM outbox_msg WHERE msg_key = $1 AND status = 'PENDING'",
                    pg::Params{}.text(key)) == "3");
      must(app.exec("ROLLBACK"));
    }
    rig.await("all of the key are sent", [&] {
      return rig.ask("SELECT count(*) FROM outbox_msg WHERE msg_key = $1 AND status = 'SENT'",
                     pg::Params{}.text(key)) == "3";
    });
    if (std::string_view{answer} != "cancelled") must(app.exec("ROLLBACK"));
    CHECK(bodies_of(KafkaCluster::shared().read_all(topic), key) ==
          std::vector<std::string>{"\"1\"", "\"2\"", "\"3\""});
  }
}

TEST_CASE("a message that was called cancelled at the last moment is never sent") {
  RelayRig rig;
  const std::string topic = KafkaCluster::shared().new_topic("cancel");
  rig.start();
  constexpr int messages = 600;
  // They come due one after the other while the cancels run, so that many are within the margin.
  rig.ask(
      "INSERT INTO outbox_msg (topic, msg_key, body, available_at) SELECT $1, i::text, to_json(i), "
      "clock_timestamp() + interval '4.5 s' + i * interval '3 ms' FROM generate_series(1, $2::int) i",
      pg::Params{}.text(topic).i32(messages));
  std::vector<int> order(messages);
  for (int i = 0; i < messages; ++i) order[static_cast<std::size_t>(i)] = i + 1;
  std::ranges::shuffle(order, std::mt19937{7});
  std::set<std::string> cancelled;
  for (const int number : order) {
    const std::string key = std::to_string(number);
    const std::string answer =
        rig.ask("SELECT outbox_cancel(msg_id), pg_sleep(0.002)::text FROM outbox_msg WHERE msg_key = $1",
                pg::Params{}.text(key));
    if (answer.starts_with("cancelled")) cancelled.insert(key);
  }
  rig.eventually_none_pending();
  CHECK(!cancelled.empty());
  CHECK(cancelled.size() < messages);
  std::size_t sent = 0;
  for (const KafkaRecord& r : KafkaCluster::shared().read_all(topic)) {
    CHECK_FALSE(cancelled.contains(*r.key));
    ++sent;
  }
  CHECK(sent + cancelled.size() == messages);
  CHECK(rig.count("CANCELLED") == std::to_string(cancelled.size()));
}
