#include <doctest/doctest.h>

#include <algorithm>

#include "relay/check/judge.hpp"

using namespace outbox;
using namespace outbox::relay;

namespace {

const JudgeLimits limits{};

Severity of(const Findings& findings, std::string_view check) {
  const auto at = std::ranges::find(findings, check, &Finding::check);
  return at == findings.end() ? Severity::ok : at->severity;
}

config::Pipeline pipeline() {
  config::Pipeline p;
  p.name = "payments";
  p.source.mode = config::Mode::notify;
  p.source.lanes = 8;
  return p;
}

ServerFacts fit_server() {
  ServerFacts f;
  f.version = 150018;
  return f;
}

}  // namespace

TEST_CASE("a server without a fault has findings that are all ok") {
  for (const Finding& f : judge_server(fit_server(), pipeline(), limits)) {
    CAPTURE(f.check);
    CHECK(f.severity == Severity::ok);
    CHECK(f.advice.empty());
  }
}

// What a test cannot seed on a shared server is judged here; tests/integration/check_test.cpp seeds the rest.
TEST_CASE("faults of a server are found: old version, standby, fsync off, clock, pooler") {
  ServerFacts f = fit_server();
  f.version = 140011;
  CHECK(of(judge_server(f, pipeline(), limits), "postgres.version") == Severity::error);
  f = fit_server();
  f.standby = true;
  CHECK(of(judge_server(f, pipeline(), limits), "postgres.writable") == Severity::error);
  f = fit_server();
  f.fsync = false;
  CHECK(of(judge_server(f, pipeline(), limits), "postgres.durability") == Severity::error);
  f = fit_server();
  f.clock_ahead = Micros{-6'000'000};
  CHECK(of(judge_server(f, pipeline(), limits), "postgres.clock") == Severity::warning);
  f = fit_server();
  f.prepared_transactions = 1;
  CHECK(of(judge_server(f, pipeline(), limits), "postgres.old_transaction") == Severity::warning);
  f = fit_server();
  f.standbys_wanted = "away";
  f.sees_others = false;
  CHECK(of(judge_server(f, pipeline(), limits), "postgres.replication") == Severity::note);
  f = fit_server();
  f.notify_queue = 0.2;
  CHECK(of(judge_server(f, pipeline(), limits), "postgres.notify_queue") == Severity::warning);
  f.notify_queue = 0.5;
  CHECK(of(judge_server(f, pipeline(), limits), "postgres.notify_queue") == Severity::error);
}

TEST_CASE(
    "partitions that end within the hour are told in minutes, and are an error only once they are over") {
  TableFacts f;
  const auto said = [&](Millis ahead) {
    f.partitions_ahead = ahead;
    const Findings all = judge_table(f, pipeline(), {}, limits);
    return *std::ranges::find(all, "table.partitions_ahead", &Finding::check);
  };
  using namespace std::chrono_literals;
  CHECK(said(72h).severity == Severity::ok);
  CHECK(said(5h).severity == Severity::warning);
  CHECK(said(5h).found.starts_with("partitions reach 5 hours ahead"));
  for (const Millis left : {Millis{59min}, Millis{30s}, Millis{1}})
    CHECK(said(left).severity == Severity::warning);
  CHECK(said(59min).found.starts_with("partitions reach 59 minutes ahead"));
  CHECK(said(0min).severity == Severity::error);
  CHECK(said(-90min).found.starts_with("partitions reach -1 hours ahead"));
  CHECK(said(-90min).severity == Severity::error);
}

TEST_CASE("a pooler is a warning with notifications, and fine otherwise") {
  ServerFacts f = fit_server();
  f.pooled = true;
  config::Pipeline p = pipeline();
  CHECK(of(judge_server(f, p, limits), "postgres.pooler") == Severity::warning);
  p.source.mode = config::Mode::poll;
  CHECK(of(judge_server(f, p, limits), "postgres.pooler") == Severity::ok);
}

TEST_CASE("a topic's faults are found, each by its own check") {
  TopicConfigFacts topic{.topic = "t", .partitions = 3, .replicas = 3};
  topic.config = {{"min.insync.replicas", "2"},
                  {"max.message.bytes", "1048588"},
                  {"retention.ms", "604800000"},
                  {"cleanup.policy", "delete"},
                  {"unclean.leader.election.enable", "false"}};
  const auto judged = [&](std::int64_t largest = 100, std::int32_t pinned = 3) {
    return judge_cluster({.brokers = 3, .topics = {topic}},
                         {{.topic = "t", .rows = 1, .largest_body = largest, .pinned = pinned, .kafka = "t"}},
                         pipeline(), limits);
  };
  CHECK(worst(judged()) == Severity::ok);
  CHECK(of(judged(1'048'000), "kafka.message_bytes") == Severity::error);
  CHECK(of(judged(100, 2), "kafka.partitions") == Severity::note);
  topic.config["min.insync.replicas"] = "3";
  CHECK(of(judged(), "kafka.replicas") == Severity::warning);
  topic.config["min.insync.replicas"] = "1";
  CHECK(of(judged(), "kafka.replicas") == Severity::warning);
  topic.config["min.insync.replicas"] = "2";
  topic.config["retention.ms"] = "3600000";
  CHECK(of(judged(), "kafka.retention") == Severity::warning);
  topic.config["retention.ms"] = "-1";
  topic.config["cleanup.policy"] = "compact,delete";
  CHECK(of(judged(), "kafka.compaction") == Severity::warning);
  topic.config["cleanup.policy"] = "delete";
  topic.config["unclean.leader.election.enable"] = "true";
  CHECK(of(judged(), "kafka.unclean_election") == Severity::warning);
  topic.config["unclean.leader.election.enable"] = "false";
  topic.leaderless = 1;
  CHECK(of(judged(), "kafka.leaders") == Severity::warning);
  topic.leaderless = 0;
  topic.config.clear();
  CHECK(of(judged(), "kafka.topic_config") == Severity::note);
  topic.state = TopicState::forbidden;
  CHECK(of(judged(), "kafka.topic") == Severity::error);
}

TEST_CASE("a missing topic is an error where nobody makes it, also under the name that Kafka has for it") {
  const ClusterFacts facts{
      .brokers = 1, .topics = {{.topic = "eu.t", .state = TopicState::missing, .reason = "unknown topic"}}};
  config::Pipeline p = pipeline();
  const auto judged = [&] {
    return judge_cluster(facts, {{.topic = "t", .rows = 1, .kafka = "eu.t"}}, p, limits);
  };
  CHECK(of(judged(), "kafka.topic") == Severity::error);
  CHECK(judged().back().found.starts_with("topic eu.t (of t): unknown topic"));
  p.topics.create = config::CreateTopics::on;
  CHECK(of(judged(), "kafka.topic") == Severity::note);
}

TEST_CASE(
    "who may write a topic: what is granted, what is denied, what nobody granted, what cannot be known") {
  ClusterFacts facts{.brokers = 1, .topics = {{.topic = "t"}}};
  config::Pipeline p = pipeline();
  p.kafka = {{"security.protocol", "SASL_SSL"}, {"sasl.mechanism", "PLAIN"}, {"sasl.username", "outbox"}};
  facts.access.emplace();
  const auto severity = [&] { return of(judge_access(facts, p), "kafka.access"); };
  CHECK(severity() == Severity::warning);
  facts.access = std::vector<AccessRule>{{.pattern = "t", .principal = "User:outbox"}};
  CHECK(severity() == Severity::ok);
  facts.access->push_back({.pattern = "*", .principal = "User:*", .effect = AccessEffect::deny});
  CHECK(severity() == Severity::warning);
  facts.access->back().any_host = false;
  CHECK(severity() == Severity::ok);
  facts.access = std::vector<AccessRule>{{.pattern = "t", .principal = "User:somebody"},
                                         {.pattern = "u", .principal = "User:*"}};
  CHECK(severity() == Severity::warning);
  facts.topics.front().state = TopicState::missing;  // that is another finding
  CHECK(severity() == Severity::ok);
  facts.topics.front().state = TopicState::present;
  facts.access =
      std::vector<AccessRule>{{.pattern = "", .kind = AccessPattern::prefixed, .principal = "User:*"}};
  CHECK(severity() == Severity::ok);
  p.kafka["sasl.mechanism"] = "OAUTHBEARER";
  CHECK(severity() == Severity::note);
  facts.access.reset();
  CHECK(severity() == Severity::note);
}

TEST_CASE("a ledger's topic: what run refuses is an error, what it mends itself is less, each by its cause") {
  config::Pipeline p = pipeline();
  p.kafka = {{"security.protocol", "SASL_SSL"}, {"sasl.mechanism", "PLAIN"}, {"sasl.username", "outbox"}};
  TopicConfigFacts ledger{.topic = "outboxd-ledger-payments", .partitions = 8, .replicas = 3};
  ledger.config = {{"cleanup.policy", "compact"},
                   {"min.insync.replicas", "2"},
                   {"retention.ms", "604800000"},
                   {"unclean.leader.election.enable", "false"}};
  std::optional<std::vector<AccessRule>> access;
  const auto judged = [&] {
    return judge_ledger({.brokers = 3, .topics = {{.topic = "t"}, ledger}, .access = access}, p);
  };
  CHECK(!ledger_of(p));
  CHECK(judged().empty());  // at least once
  p.delivery = config::Delivery::exactly_once;
  REQUIRE(!judged().empty());
  CHECK(judged().front().severity == Severity::ok);

  for (const char* policy : {"delete", "compact,delete"}) {
    ledger.config["cleanup.policy"] = policy;
    CHECK(of(judged(), "kafka.ledger") == Severity::error);
    CHECK(judged().front().found.find(std::string{"cleanup.policy is "} + policy +
                                      " and its retention.ms 604800000") != std::string::npos);
  }
  ledger.config["cleanup.policy"] = "compact";
  p.source.lanes = 9;
  CHECK(of(judged(), "kafka.ledger") == Severity::warning);
  CHECK(judged().front().found.ends_with("it has 8 partitions, and 9 lanes need one each"));
  p.source.lanes = 8;
  ledger.config["min.insync.replicas"] = "1";
  CHECK(of(judged(), "kafka.replicas") == Severity::warning);
  ledger.config["min.insync.replicas"] = "3";
  CHECK(of(judged(), "kafka.replicas") == Severity::warning);
  ledger.config["min.insync.replicas"] = "2";
  ledger.replicas = 1;
  CHECK(of(judged(), "kafka.replicas") == Severity::warning);
  ledger.replicas = 3;
  ledger.config["unclean.leader.election.enable"] = "true";
  CHECK(of(judged(), "kafka.unclean_election") == Severity::warning);
  ledger.config["unclean.leader.election.enable"] = "false";
  ledger.leaderless = 1;
  CHECK(of(judged(), "kafka.leaders") == Severity::warning);
  ledger.leaderless = 0;

  access.emplace(std::vector<AccessRule>{{.pattern = ledger.topic, .principal = "User:outbox"}});
  CHECK(of(judged(), "kafka.ledger") == Severity::warning);  // writing is another right
  access->push_back(
      {.pattern = ledger.topic, .principal = "User:outbox", .operation = AccessOperation::read});
  CHECK(of(judged(), "kafka.ledger") == Severity::ok);
  access->push_back({.pattern = "*",
                     .principal = "User:*",
                     .effect = AccessEffect::deny,
                     .operation = AccessOperation::all});
  CHECK(of(judged(), "kafka.ledger") == Severity::warning);
  access = std::vector<AccessRule>{
      {.pattern = "*", .principal = "User:outbox", .operation = AccessOperation::all}};
  CHECK(of(judged(), "kafka.ledger") == Severity::ok);
  access.reset();

  ledger.config.clear();
  CHECK(of(judged(), "kafka.topic_config") == Severity::note);
  ledger.state = TopicState::missing;
  CHECK(of(judged(), "kafka.ledger") == Severity::note);
  CHECK(judged().front().advice.find("--topic outboxd-ledger-payments --partitions 8") != std::string::npos);
  ledger.state = TopicState::forbidden;
  CHECK(of(judged(), "kafka.ledger") == Severity::error);
  p.ledger.topic = ledger.topic = "another";
  CHECK(ledger_of(p) == "another");
  CHECK(of(judged(), "kafka.ledger") == Severity::error);
}

TEST_CASE("whom a broker takes a client for: by its password, by nothing, or not to be known here") {
  using Properties = std::map<std::string, std::string>;
  CHECK(principal_of({}) == "User:ANONYMOUS");
  CHECK(principal_of(Properties{{"security.protocol", "ssl"}}) == "User:ANONYMOUS");
  CHECK(principal_of(Properties{{"security.protocol", "ssl"}, {"ssl.certificate.location", "/c"}}) ==
        std::nullopt);
  CHECK(principal_of(Properties{{"security.protocol", "sasl_plaintext"},
                                {"sasl.mechanisms", "SCRAM-SHA-512"},
                                {"sasl.username", "u"}}) == "User:u");
  CHECK(principal_of(Properties{{"security.protocol", "sasl_ssl"}, {"sasl.username", "u"}}) == std::nullopt);
}

TEST_CASE("the worst finding decides, and stands first for people") {
  const Findings findings{{"a", Severity::ok, "fine", ""},
                          {"b", Severity::warning, "x", "mend it"},
                          {"c", Severity::error, "y\nz", ""}};
  CHECK(worst(findings) == Severity::error);
  CHECK(worst({}) == Severity::ok);
  CHECK(findings_text("p", findings) ==
        "p\n  error    c: y\\nz\n  warning  b: x\n           do: mend it\n  ok       a: fine\n");
}
