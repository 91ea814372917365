#include "relay/check/finding.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "relay/log/line.hpp"

namespace outbox::relay {
namespace {

// What is looked at first. A server that is away hides everything behind it.
int weight(Severity severity) {
  return static_cast<int>(severity);
}

// On one line, whatever a server's text held.
std::string plain(std::string_view text) {
  const std::string shown = log::text_value(text);
  return shown.starts_with('"') && shown.size() >= 2 ? shown.substr(1, shown.size() - 2) : shown;
}

}  // namespace

std::string_view to_string(Severity severity) noexcept {
  switch (severity) {
    case Severity::ok:
      return "ok";
    case Severity::note:
      return "note";
    case Severity::warning:
      return "warning";
    case Severity::error:
      return "error";
    case Severity::away:
      return "away";
  }
  return "unknown";
}

Severity worst(const Findings& findings) noexcept {
  const auto at = std::ranges::max_element(findings, {}, [](const Finding& f) { return weight(f.severity); });
  return at == findings.end() ? Severity::ok : at->severity;
}

std::string findings_text(const std::string& pipeline, Findings findings) {
  std::ranges::stable_sort(findings, std::greater{}, [](const Finding& f) { return weight(f.severity); });
  std::string out = pipeline + "\n";
  for (const Finding& f : findings) {
    std::string severity{to_string(f.severity)};
    severity.resize(8, ' ');
    out += "  " + severity + " " + f.check + ": " + plain(f.found) + "\n";
    if (!f.advice.empty()) out += "           do: " + plain(f.advice) + "\n";
  }
  return out;
}

std::string findings_json(const std::string& pipeline, const Findings& findings) {
  nlohmann::json out{
      {"pipeline", pipeline}, {"worst", to_string(worst(findings))}, {"findings", nlohmann::json::array()}};
  for (const Finding& f : findings) {
    out["findings"].push_back(
        {{"check", f.check}, {"severity", to_string(f.severity)}, {"found", f.found}, {"advice", f.advice}});
  }
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace outbox::relay
