// The dashboard and the alert rules speak of metrics that exist, and each alert has its page in the runbook.

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "relay/metrics/metric_table.hpp"

using namespace outbox::relay;

namespace {

const std::string root = OUTBOX_SOURCE_FOLDER;

std::string file(const std::string& name) {
  std::ifstream in(root + "/" + name);
  REQUIRE_MESSAGE(in, name);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// A histogram's series have its name and a suffix.
bool in_table(const std::string& name) {
  return std::ranges::any_of(metric_table, [&](const MetricFacts& facts) {
    if (facts.type != MetricType::histogram) return facts.name == name;
    const std::string base{facts.name};
    return name == base + "_bucket" || name == base + "_sum" || name == base + "_count";
  });
}

std::set<std::string> metrics_in(const std::string& expression) {
  static const std::regex metric{R"(\b(?:outboxd|process)_[a-z_]+)"};
  std::set<std::string> out;
  for (auto it = std::sregex_iterator(expression.begin(), expression.end(), metric);
       it != std::sregex_iterator{}; ++it)
    out.insert(it->str());
  return out;
}

void all_in_table(const std::string& where, const std::string& expression) {
  CAPTURE(where);
  CAPTURE(expression);
  const auto metrics = metrics_in(expression);
  CHECK((!metrics.empty() || expression.find("up{job=\"outboxd\"}") != std::string::npos));
  for (const std::string& name : metrics) CHECK_MESSAGE(in_table(name), name);
  CHECK(std::ranges::count(expression, '(') == std::ranges::count(expression, ')'));
}

void expressions_of(const nlohmann::json& node, std::vector<std::string>& out) {
  if (node.is_object() && node.contains("expr")) out.push_back(node["expr"]);
  for (const auto& child : node)
    if (child.is_structured()) expressions_of(child, out);
}

}  // namespace

TEST_CASE("every alert is on metrics of the table, says how urgent it is, and has its page in the runbook") {
  const YAML::Node rules = YAML::Load(file("config/alerts.yaml"))["groups"][0]["rules"];
  const std::string runbook = file("docs/operations.md");
  REQUIRE(rules.size() > 10);
  for (const YAML::Node& rule : rules) {
    const auto name = rule["alert"].as<std::string>();
    all_in_table(name, rule["expr"].as<std::string>());
    const auto severity = rule["labels"]["severity"].as<std::string>();
    CHECK((severity == "page" || severity == "ticket"));
    CHECK_FALSE(rule["annotations"]["summary"].as<std::string>().empty());
    std::string anchor = name;
    std::ranges::transform(anchor, anchor.begin(), [](unsigned char c) { return std::tolower(c); });
    CHECK(rule["annotations"]["runbook"].as<std::string>() == "docs/operations.md#" + anchor);
    CHECK_MESSAGE(runbook.find("\n### " + name + "\n") != std::string::npos, name);
  }
}

TEST_CASE("every page of the runbook belongs to an alert") {
  const std::string alerts = file("config/alerts.yaml");
  const std::string runbook = file("docs/operations.md");
  static const std::regex page{R"(\n### (Outboxd[A-Za-z]+)\n)"};
  for (auto it = std::sregex_iterator(runbook.begin(), runbook.end(), page); it != std::sregex_iterator{};
       ++it)
    CHECK_MESSAGE(alerts.find("- alert: " + (*it)[1].str() + "\n") != std::string::npos, (*it)[1].str());
}

TEST_CASE("every panel of the dashboard is on metrics of the table") {
  std::vector<std::string> expressions;
  expressions_of(nlohmann::json::parse(file("config/grafana-outboxd.json")), expressions);
  REQUIRE(expressions.size() > 20);
  for (const std::string& expression : expressions) all_in_table("dashboard", expression);
}
