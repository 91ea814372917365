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

TEST_CASE("without a survey its figures are absent, not zero") {
  PipelineView view = full_view();
  view.survey.taken_at.reset();
  const std::string text = scraped(view);
  CHECK(text.find("outboxd_pending_rows{") == std::string::npos);
  CHECK(text.find("outboxd_surveys_failed_total{") != std::string::npos);
}
