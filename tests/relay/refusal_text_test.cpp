// What a broker says reaches the database: whatever bytes it is made of, it is stored readable and bounded,
// and the relay goes on. The relay's own pipeline over a real PostgreSQL, and a broker that says such things.

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <doctest/doctest.h>

#include <array>
#include <map>

#include "relay/host/asio_loop.hpp"
#include "relay/postgres/postgres_source.hpp"
#include "relay/shell/pipeline.hpp"
#include "tests/integration/sql_fixture.hpp"
#include "tests/support/eventually.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

// NUL, bytes that are no UTF-8, a control character, and a megabyte more.
std::string wild_text() {
  return std::string("no\0, \xFF\xFE \xC3 \x1B[2J ", 14) + std::string(1 << 20, '\xE2');
}

// Refuses whatever is published: rows of the topic "message" as messages, of "topic" as a topic.
class RudeBroker final : public relay::Broker {
 public:
  explicit RudeBroker(relay::Loop& loop) : loop_(loop) {}
  void start(Events events) override { events_ = std::move(events); }
  void stop() override { events_ = {}; }
  [[nodiscard]] Result<relay::Accepted> publish(const relay::Outgoing& out) override {
    tries[out.message->id.value] += 1;
    const relay::Refusal refusal =
        out.message->topic == "topic" ? relay::Refusal::topic : relay::Refusal::message;
    loop_.post([this, d = relay::Delivery{out.token, out.partition, Offset{-1}, refusal, wild_text()}] {
      if (events_.on_delivered) events_.on_delivered(std::array{d});
    });
    return relay::Accepted::queued;
  }
  void look_up(std::string topic, relay::Done<relay::TopicFacts> done) override {
    relay::TopicFacts facts{.state = relay::TopicState::present, .partitions = 1, .reason = ""};
    if (topic == "forbidden")
      facts = {.state = relay::TopicState::missing, .partitions = 0, .reason = wild_text()};
    loop_.post([facts = std::move(facts), done = std::move(done)] { done(facts); });
  }
  void purge() override {}
  void restart(relay::DoneStatus done) override {
    loop_.post([done = std::move(done)] { done({}); });
  }

  std::map<std::int64_t, int> tries;

 private:
  using Offset = relay::Offset;
  relay::Loop& loop_;
  Events events_;
};

}  // namespace

TEST_CASE(
    "what a broker says, with NUL, bytes that are no text, and a megabyte long, is stored readable and "
    "bounded, and nothing loops") {
  OutboxDatabase database;
  ask(database.sql(),
      "INSERT INTO outbox_msg (topic, msg_key, body) VALUES ('message', 'k', '1'), ('topic', 'k', "
      "'2'), ('forbidden', 'k', '3')");
  boost::asio::io_context context;
  relay::AsioLoop loop(context);
  RudeBroker broker(loop);
  relay::PostgresSourceOptions source_options;
  source_options.connect.uri = database.uri();
  relay::PostgresSource source(context, source_options);
  relay::PipelineOptions options;
  options.name = options.owner = "rude";
  relay::Pipeline pipeline(options, loop, source, broker, log::Logger{});
  pipeline.start();
  const auto state = [&] {
    context.run_for(Millis{20});
    return ask(database.sql(), "SELECT status FROM outbox_msg ORDER BY id");
  };
  eventually("one is dead and two are held", [&] { return state() == "DEAD HELD HELD"; });
  CHECK(ask(database.sql(),
            "SELECT bool_and(octet_length(t) BETWEEN 20 AND 1000) FROM (SELECT last_error FROM "
            "outbox_msg WHERE status = 'DEAD' UNION ALL SELECT reason FROM outbox_hold) r (t)") == "t");
  CHECK(ask(database.sql(),
            "SELECT count(*) FROM outbox_hold WHERE scope = 'topic' AND starts_with(reason, "
            "'kafka: ')") == "2");
  for (const auto& [row, count] : broker.tries) CHECK(count <= 3);
  pipeline.stop([] {});
  eventually("it stops", [&] {
    context.run_for(Millis{20});
    return pipeline.phase() == relay::Pipeline::Phase::stopped;
  });
}
