#pragma once
// What outboxd's exit status says. One table: `outboxd --help` and docs/configuration.md print it.

#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace outbox::commands {

enum class ExitCode : int {
  ok = 0,
  failed = 1,
  usage = 2,
  unreachable = 3,
  refused = 4,
};

struct ExitCodeRow {
  ExitCode code;
  std::string_view name;
  std::string_view meaning;
  std::string_view restart;  ///< whether starting again can help
  int weight;                ///< the less a restart helps, the more: which code wins where two pipelines fail
};
[[nodiscard]] std::span<const ExitCodeRow> exit_codes();

/// retry, reconnect and in_doubt: unreachable; fatal: refused; quarantine: failed.
[[nodiscard]] ExitCode exit_code_of(const Error& error) noexcept;

/// Of two pipelines' codes the one that a restart helps least.
[[nodiscard]] ExitCode worse(ExitCode a, ExitCode b) noexcept;

[[nodiscard]] std::string exit_codes_text();      ///< for --help
[[nodiscard]] std::string exit_codes_markdown();  ///< for the manual

}  // namespace outbox::commands
