#include <doctest/doctest.h>

#include <set>
#include <string>

#include "relay/metrics/collect.hpp"
#include "relay/metrics/metric_table.hpp"

using namespace outbox;
using namespace outbox::relay;

namespace {

const Timings timings = [] {
  Timings t;
  t.claim.observe(Micros{700});
  return t;
}();

PipelineView full_view() {
  PipelineView view{.name = "payments", .figures = {}, .survey = {}, .upkeep = {}};
  view.figures.phase = "working";
  view.figures.timings = &timings;
  view.figures.counters.marked = 42;
  view.figures.lanes = {Lease{LaneId{3}, Epoch{7}}};
  view.figures.topics = {{.name = "payment.created", .state = "ready", .counters = {.published = 5}}};
  view.figures.transactional = true;
  view.figures.counters.transactions = 9;
  view.figures.counters.transactions_failed = 2;
  view.figures.counters.lane_producers_opened = 3;
  view.figures.stopped = {{LaneId{3}, Millis{1500}, "its transaction waits for Kafka"}};
  view.kafka = KafkaStatistics{.brokers = {{.name = "b:9092", .up = true}}};
  view.survey.taken_at = MonoTime{};
  view.survey.facts.partitions_ahead = Millis{86'400'000};
  view.survey.facts.counts.pending = 4;
  view.survey.facts.counts.due = 1;
  view.survey.facts.horizon =
      HorizonHolder{"session", "pid 7 user app application nightly", 12, Millis{60'000}, "active"};
  return view;
}

std::string scraped(const PipelineView& view) {
  Exposition out;
  collect(ProcessFigures{}, out);
  collect(view, MonoTime{} + std::chrono::seconds{3}, out);
  return out.text();
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("every metric of the table is exposed, with its help and type") {
  const std::string text = scraped(full_view());
  for (const MetricFacts& facts : metric_table) {
    CAPTURE(facts.name);
    CHECK(has_line(text, "# TYPE " + std::string{facts.name} + " " + std::string{to_string(facts.type)}));
    CHECK(text.find("# HELP " + std::string{facts.name} + " ") != std::string::npos);
  }
}

TEST_CASE("names follow Prometheus' rules, and none stands twice in the table") {
  std::set<std::string_view> seen;
  for (const MetricFacts& facts : metric_table) {
    CAPTURE(facts.name);
    CHECK(seen.insert(facts.name).second);
    CHECK(facts.name.ends_with("_total") == (facts.type == MetricType::counter));
    if (facts.unit == "seconds" && facts.type != MetricType::counter) CHECK(facts.name.ends_with("_seconds"));
    if (facts.unit == "bytes") CHECK(facts.name.ends_with("_bytes"));
    CHECK(facts.help.ends_with("."));
  }
}

TEST_CASE("a sample carries its labels and its value, as large as a 64-bit total gets") {
  PipelineView view = full_view();
  view.figures.counters.marked = 123'456'789'012;
  const std::string text = scraped(view);
  CHECK(has_line(text, R"(outboxd_marked_rows_total{pipeline="payments"} 123456789012)"));
  CHECK(has_line(text, R"(outboxd_lane_epoch{pipeline="payments",lane="3"} 7)"));
  CHECK(has_line(text, R"(outboxd_published_total{pipeline="payments",topic="payment.created"} 5)"));
  CHECK(has_line(text, R"(outboxd_pending_rows{pipeline="payments"} 5)"));
  CHECK(has_line(text, R"(outboxd_phase{pipeline="payments",phase="working"} 1)"));
  CHECK(has_line(text, R"(outboxd_phase{pipeline="payments",phase="standby"} 0)"));
}

TEST_CASE("a histogram is cumulative and ends at +Inf with the count") {
  const std::string text = scraped(full_view());
  CHECK(has_line(text, R"(outboxd_claim_seconds_bucket{pipeline="payments",le="0.0005"} 0)"));
  CHECK(has_line(text, R"(outboxd_claim_seconds_bucket{pipeline="payments",le="0.001"} 1)"));
  CHECK(has_line(text, R"(outboxd_claim_seconds_bucket{pipeline="payments",le="+Inf"} 1)"));
  CHECK(has_line(text, R"(outboxd_claim_seconds_count{pipeline="payments"} 1)"));
}

TEST_CASE("a topic's name cannot break out of its label") {
  PipelineView view = full_view();
  view.figures.topics[0].name = "a\"} 1\nevil_total 9";
  const std::string text = scraped(view);
  CHECK(text.find("\nevil_total") == std::string::npos);
}

TEST_CASE("who holds vacuum back is named while it is open for long, and not before") {
  PipelineView view = full_view();
  const std::string line =
      R"(outboxd_xmin_holder_transactions{pipeline="payments",kind="session",holder="pid 7 user app application nightly"} 12)";
  CHECK(has_line(scraped(view), line));
  view.survey.facts.horizon->open = Millis{9999};
  CHECK_FALSE(has_line(scraped(view), line));
}

TEST_CASE(
    "OpenMetrics: a counter's family is named without its ending, its sample with it, and the text ends") {
  Exposition out;
  out.add(metric("outboxd_marked_rows_total"), {"p"}, std::int64_t{5});
  out.add(metric("outboxd_ready"), {"p"}, true);
  const std::string plain = out.text();
  CHECK(has_line(plain, "# TYPE outboxd_marked_rows_total counter"));
  CHECK(plain.find("# EOF") == std::string::npos);
  const std::string open = out.text(ExpositionFormat::openmetrics);
  CHECK(has_line(open, "# TYPE outboxd_marked_rows counter"));
  CHECK(has_line(open, "# HELP outboxd_marked_rows Rows marked SENT, or deleted."));
  CHECK(has_line(open, "# TYPE outboxd_ready gauge"));
  CHECK(has_line(open, R"(outboxd_marked_rows_total{pipeline="p"} 5)"));
  CHECK(open.ends_with("\n# EOF\n"));
}

TEST_CASE("the asker chooses the format: OpenMetrics where it is wanted as much as plain text") {
  const auto open = [](std::string_view accept) {
    return format_accepted(accept) == ExpositionFormat::openmetrics;
  };
  CHECK(open(
      "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
      "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"));
  CHECK(open("application/openmetrics-text"));
  CHECK(open(" text/plain ; q=0.5 , application/openmetrics-text ; q=0.5 "));
  CHECK_FALSE(open("text/plain,application/openmetrics-text;q=0.9"));
  CHECK_FALSE(open("application/openmetrics-text;q=0"));
  CHECK_FALSE(open("application/openmetrics-text;q=nonsense"));
  CHECK_FALSE(open(""));
  CHECK_FALSE(open("*/*"));
  CHECK_FALSE(open(",;,=q;q=;"));
}

TEST_CASE("without a survey its figures are absent, not zero") {
  PipelineView view = full_view();
  view.survey.taken_at.reset();
  const std::string text = scraped(view);
  CHECK(text.find("outboxd_pending_rows{") == std::string::npos);
  CHECK(text.find("outboxd_surveys_failed_total{") != std::string::npos);
}

TEST_CASE("transactions and stopped lanes are told of a pipeline that has them, and of no other") {
  PipelineView view = full_view();
  const std::string text = scraped(view);
  CHECK(has_line(text, R"(outboxd_transactions_total{pipeline="payments"} 9)"));
  CHECK(has_line(text, R"(outboxd_transactions_failed_total{pipeline="payments"} 2)"));
  CHECK(has_line(text, R"(outboxd_transactional_producers_total{pipeline="payments"} 3)"));
  CHECK(has_line(text, R"(outboxd_lanes_stopped{pipeline="payments"} 1)"));
  CHECK(has_line(text, R"(outboxd_lane_stopped_seconds{pipeline="payments",lane="3"} 1.5)"));
  view.figures.transactional = false;
  view.figures.stopped.clear();
  CHECK(scraped(view).find("outboxd_transactions_total") == std::string::npos);
  CHECK(scraped(view).find("lanes_stopped") == std::string::npos);
}
