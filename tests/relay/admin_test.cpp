#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <regex>

#include "tests/relay/rig.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

RigOptions shown(RigOptions options = {}) {
  options.admin = admin_socket;
  return options;
}

void insert(RelayRig& rig, const std::string& topic, int count) {
  rig.ask(
      "INSERT INTO outbox_msg (topic, msg_key, body) SELECT $1, (i % 10)::text, to_json(i) FROM "
      "generate_series(1, $2::int) i",
      pg::Params{}.text(topic).i32(count));
}

void await_listening(RelayRig& rig) {
  rig.await("the relay shows itself",
            [&] { return rig.logs().find("admin_listening") != std::string::npos; });
}

void await_ready(RelayRig& rig) {
  await_listening(rig);
  rig.await("the relay is ready", [&] { return rig.shown("/readyz").status == 200; });
}

// A sample's value, by its name and labels as they are exposed; "" where there is none.
std::string sample(const std::string& metrics, const std::string& series) {
  const auto at = ("\n" + metrics).find("\n" + series + " ");
  if (at == std::string::npos) return "";
  const auto value = at + series.size() + 1;
  return metrics.substr(value, metrics.find('\n', value) - value);
}

}  // namespace

TEST_CASE("an idle relay is ready, and stays ready beyond every patience") {
  RelayRig rig(shown());
  rig.start();
  await_ready(rig);
  CHECK(rig.shown("/readyz").body == "rig: ready\n");
  CHECK_FALSE(happens_within(Millis{16'000}, [&] { return rig.shown("/readyz").status != 200; }));
}

TEST_CASE(
    "a relay whose looks are not answered is not ready within 15 s, says why, and is ready again after it") {
  RelayRig rig(shown());
  rig.start();
  await_ready(rig);
  rig.ask("BEGIN");
  rig.ask("LOCK TABLE outbox_msg IN ACCESS EXCLUSIVE MODE");
  rig.await(
      "it is not ready", [&] { return rig.shown("/readyz").status == 503; }, Millis{15'000});
  CHECK(rig.shown("/readyz").body.find("rig: stuck: no look at the table was answered for") == 0);
  CHECK(rig.shown("/healthz").status == 200);
  rig.ask("ROLLBACK");
  rig.await("it is ready again", [&] { return rig.shown("/readyz").status == 200; });
}

TEST_CASE("a relay whose Kafka is away is waiting, not ready, with the reason") {
  RelayRig rig(shown({.kafka = "127.0.0.1:9"}));
  rig.start();
  await_listening(rig);
  rig.await("it is not ready", [&] {
    return rig.shown("/readyz").body.find("waiting: Kafka is away for 1") != std::string::npos;
  });
  CHECK(rig.shown("/readyz").status == 503);
  CHECK(sample(rig.shown("/metrics").body, R"(outboxd_kafka_up{pipeline="rig"})") == "0");
}

TEST_CASE("the metrics count what was sent, a topic each, and the survey what waits") {
  RelayRig rig(shown());
  const std::string topic = KafkaCluster::shared().new_topic("counted", 3);
  rig.start();
  insert(rig, topic, 1234);
  rig.eventually_none_pending();
  rig.ask("INSERT INTO outbox_msg (topic, body, available_at) VALUES ($1, '1', now() + interval '1 day')",
          pg::Params{}.text(topic));
  const auto value = [&](const std::string& series) { return sample(rig.shown("/metrics").body, series); };
  rig.await("the survey saw it", [&] { return value(R"(outboxd_scheduled_rows{pipeline="rig"})") == "1"; });
  const std::string acked = "outboxd_acked_total{pipeline=\"rig\",topic=\"" + topic + "\"}";
  CHECK(value(acked) == "1234");
  CHECK(value(R"(outboxd_marked_rows_total{pipeline="rig"})") == "1234");
  CHECK(value(R"(outboxd_created_to_ack_seconds_count{pipeline="rig"})") == "1234");
  CHECK(value(R"(outboxd_claim_to_ack_seconds_bucket{pipeline="rig",le="+Inf"})") == "1234");
  CHECK(value(R"(outboxd_pending_rows{pipeline="rig"})") == "0");
  CHECK(value(R"(outboxd_in_flight_rows{pipeline="rig"})") == "0");
  CHECK(value(R"(outboxd_lanes_held{pipeline="rig"})") == "8");
  CHECK(value(R"(outboxd_phase{pipeline="rig",phase="working"})") == "1");
  CHECK(value(R"(outboxd_ready{pipeline="rig"})") == "1");
  CHECK(std::stod(value(R"(outboxd_partitions_ahead_seconds{pipeline="rig"})")) > 6 * 86400);
}

TEST_CASE("a hundred topics: a scrape stays cheap, and topics beyond the cap are told together") {
  RelayRig rig(shown({.process = "  topics_max: 100\n"}));
  rig.start();
  await_ready(rig);
  rig.ask("INSERT INTO outbox_msg (topic, body) SELECT 'none.' || i, '1' FROM generate_series(1, 120) i");
  rig.await(
      "all are held", [&] { return rig.count("HELD") == "120"; }, Millis{60'000});
  const auto metrics = rig.shown("/metrics").body;
  CHECK(sample(metrics, "outboxd_topic_held{pipeline=\"rig\",topic=\"(others)\"}") == "1");
  const std::regex series{R"(\noutboxd_topic_held\{)"};
  CHECK(std::distance(std::sregex_iterator(metrics.begin(), metrics.end(), series), {}) == 101);

  // By the relay's own time: what runs beside it on the machine is not counted.
  const auto cpu_s = [&] {
    return std::stod(sample(rig.shown("/metrics").body, "process_cpu_seconds_total"));
  };
  constexpr int scrapes = 100;
  std::vector<double> spent_ms;  // a scrape, in each of three runs
  for (int run = 0; run < 3; ++run) {
    const double begun = cpu_s();
    for (int i = 1; i < scrapes; ++i) CHECK(rig.shown("/metrics").status == 200);
    spent_ms.push_back((cpu_s() - begun) * 1000 / scrapes);
  }
  std::ranges::sort(spent_ms);
  MESSAGE("a scrape of ", metrics.size(), " bytes: ", spent_ms.front(), " to ", spent_ms.back(),
          " ms of the relay's CPU");
  CHECK(spent_ms.front() > 0);
  CHECK(spent_ms.front() < OUTBOX_SCRAPE_MS_MAX);
}

TEST_CASE("the status names pipelines, lanes, holds, the dead and the last errors, and no secret") {
  RelayRig rig(shown());
  const std::string topic = KafkaCluster::shared().new_topic("status", 1);
  rig.start();
  await_ready(rig);
  rig.ask(
      "INSERT INTO outbox_msg (topic, msg_key, body, headers) VALUES ($1, 'K', '\"hidden payload\"', "
      "'{\"outbox-id\": \"forged\"}')",
      pg::Params{}.text(topic));
  rig.await("it is dead", [&] { return rig.count("DEAD") == "1"; });
  nlohmann::json status;
  rig.await("the survey saw it", [&] {
    status = nlohmann::json::parse(rig.shown("/status").body);
    return status["pipelines"][0]["table"].value("dead", 0) == 1;
  });
  const auto& pipeline = status["pipelines"][0];
  CHECK(pipeline["name"] == "rig");
  CHECK(pipeline["verdict"] == "ready");
  CHECK(pipeline["table"]["lanes"].size() == 8);
  CHECK(pipeline["table"]["lanes"][0]["owner"].get<std::string>().ends_with("/rig"));
  CHECK(pipeline["table"]["holds"][0]["key"] == "K");
  CHECK(pipeline["table"]["dead_reasons"][0]["rows"] == 1);
  CHECK(pipeline["topics"][0]["dead"] == 1);
  CHECK(status["log"][0]["line"].get<std::string>().find("message_dead") != std::string::npos);
  rig.await("the history grows", [&] {
    return nlohmann::json::parse(rig.shown("/status").body)["pipelines"][0]["history"]["sent_per_s"].size() >=
           2;
  });
  for (const char* target : {"/status", "/metrics", "/", "/readyz"}) {
    CAPTURE(target);
    CHECK(rig.shown(target).body.find("hidden payload") == std::string::npos);
    CHECK(rig.shown(target).body.find(rig.uri()) == std::string::npos);
  }
}

TEST_CASE("the page refers to nothing outside of itself") {
  RelayRig rig(shown());
  rig.start();
  await_listening(rig);
  const auto page = rig.shown("/");
  CHECK(page.status == 200);
  CHECK(page.head.find("Content-Type: text/html") != std::string::npos);
  const std::regex reference{
      R"((?:src|href|action|data|poster)\s*=\s*["']([^"']*)["']|url\(([^)]*)\)|@import|\bimport\b[^;]*)"};
  for (auto it = std::sregex_iterator(page.body.begin(), page.body.end(), reference);
       it != std::sregex_iterator{}; ++it) {
    CAPTURE(it->str());
    const std::string to = (*it)[1].str() + (*it)[2].str();
    CHECK((to == "data:," || (to.starts_with("/") && !to.starts_with("//"))));
  }
  const std::regex address{R"([a-z]+://[^\s"'`<]+)"};
  for (auto it = std::sregex_iterator(page.body.begin(), page.body.end(), address);
       it != std::sregex_iterator{}; ++it)
    CHECK(it->str() == "http://www.w3.org/2000/svg");  // a name, which nothing fetches
  CHECK(rig.shown("/nothing").status == 404);
}

TEST_CASE("a taken port is no reason to stop: the relay sends, and says that it cannot be seen") {
  const std::uint16_t port = free_port();
  RelayRig first(RigOptions{.admin = "127.0.0.1:" + std::to_string(port)});
  first.start();
  await_listening(first);
  CHECK(http_get({.port = port}, "/healthz").body == "alive\n");
  RelayRig second(RigOptions{.admin = "127.0.0.1:" + std::to_string(port)});
  const std::string topic = KafkaCluster::shared().new_topic("unseen", 1);
  second.start();
  insert(second, topic, 5);
  second.eventually_none_pending();
  CHECK(second.logs().find("admin_unavailable") != std::string::npos);
}
