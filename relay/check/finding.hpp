#pragma once
// One thing that `outboxd check` found: what it is, how bad, and what to do. Plain values.

#include <string>
#include <string_view>
#include <vector>

namespace outbox::relay {

/// note: worth knowing. warning: it works, until something else happens. error: it does not work, or breaks
/// the promise. away: a server did not answer, so it could not be looked at.
enum class Severity { ok, note, warning, error, away };

struct Finding {
  std::string check{};  ///< "postgres.sequence_cache": what tests and scripts go by
  Severity severity = Severity::ok;
  std::string found{};   ///< one line, with the values
  std::string advice{};  ///< what to do; empty where nothing has to be done
};
using Findings = std::vector<Finding>;

[[nodiscard]] std::string_view to_string(Severity severity) noexcept;
/// Of two the one that needs somebody sooner.
[[nodiscard]] Severity worst(const Findings& findings) noexcept;

/// For people: the bad ones first; everything from outside is escaped.
[[nodiscard]] std::string findings_text(const std::string& pipeline, Findings findings);
/// One JSON object, without a line end.
[[nodiscard]] std::string findings_json(const std::string& pipeline, const Findings& findings);

}  // namespace outbox::relay
