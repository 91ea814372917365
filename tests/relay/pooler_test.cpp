// The real outboxd behind a real pgbouncer in transaction mode: each transaction may meet another server
// process.

#include <csignal>

#include "tests/relay/numbered.hpp"
#include "tests/support/pgbouncer.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

int count_of(const std::string& text, std::string_view word) {
  int n = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE(
    "behind a pooler in transaction mode: said once, rows found by the poll, lanes shared, no statement "
    "lost") {
  RelayRig rig;
  const PgBouncer pooler(rig.uri());
  const std::string topic = KafkaCluster::shared().new_topic("pooled", 3);
  Process& a = rig.start({.instance = "a", .uri = pooler.uri()});
  Process& b = rig.start({.instance = "b", .uri = pooler.uri()});
  rig.await("both have lanes",
            [&] { return rig.ask("SELECT count(DISTINCT owner) FROM outbox_lease") == "2"; });
  for (int i = 0; i < 20; ++i) insert_numbered(rig, topic, i * 500 + 1, i * 500 + 500, 50);
  rig.eventually_none_pending(Millis{60'000});
  a.kill(SIGTERM);
  CHECK(a.wait().code == 0);
  insert_numbered(rig, topic, 10'001, 10'100, 50);
  rig.eventually_none_pending();
  CHECK(complete_and_in_order(KafkaCluster::shared(), topic, 10'100) == 0);
  for (const Process* relay : {&a, &b}) {
    CHECK(count_of(relay->errors(), "postgres_pooler") == 1);
    CHECK(relay->errors().find("prepared statement") == std::string::npos);
    CHECK(relay->errors().find("_failed") == std::string::npos);
  }
  CHECK(rig.ask("SELECT is_called FROM outbox_asleep") == "f");  // nobody would hear the notifications
  CHECK(rig.ask("SELECT count(*) FROM pg_listening_channels()") == "0");
}
