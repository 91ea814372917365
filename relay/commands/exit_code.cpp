#include "relay/commands/exit_code.hpp"

#include <array>

namespace outbox::commands {
namespace {

constexpr std::array table{
    ExitCodeRow{ExitCode::ok, "ok", "done; `run`: stopped as asked", "not needed", 0},
    ExitCodeRow{ExitCode::failed, "failed", "a failure at run time, or a run cut short by a second signal",
                "helps", 2},
    ExitCodeRow{ExitCode::usage, "usage", "the command line or the configuration is wrong",
                "needs a change here first", 4},
    ExitCodeRow{ExitCode::unreachable, "unreachable", "PostgreSQL or Kafka did not answer",
                "helps once they are back", 1},
    ExitCodeRow{ExitCode::refused, "refused",
                "the server refused: password, database, table, privilege or version",
                "needs a change there first", 3},
};

int weight(ExitCode code) noexcept {
  for (const ExitCodeRow& row : table) {
    if (row.code == code) return row.weight;
  }
  return 0;
}

}  // namespace

std::span<const ExitCodeRow> exit_codes() {
  return table;
}

ExitCode exit_code_of(const Error& error) noexcept {
  switch (error.disposition) {
    case Disposition::retry:
    case Disposition::reconnect:
    case Disposition::in_doubt:
      return ExitCode::unreachable;
    case Disposition::quarantine:
      return ExitCode::failed;
    case Disposition::fatal:
      return ExitCode::refused;
  }
  return ExitCode::failed;
}

ExitCode worse(ExitCode a, ExitCode b) noexcept {
  return weight(a) < weight(b) ? b : a;
}

std::string exit_codes_text() {
  std::string out = "Exit status:\n";
  for (const ExitCodeRow& row : table) {
    out += "  " + std::to_string(static_cast<int>(row.code)) + "  " + std::string(row.meaning) + "\n";
  }
  return out;
}

std::string exit_codes_markdown() {
  std::string out = "\n## Exit status\n\n| status | name | meaning | a restart |\n|---|---|---|---|\n";
  for (const ExitCodeRow& row : table) {
    out += "| " + std::to_string(static_cast<int>(row.code)) + " | " + std::string(row.name) + " | " +
           std::string(row.meaning) + " | " + std::string(row.restart) + " |\n";
  }
  return out + "\nA supervisor should not restart after 2 and 4 (`RestartPreventExitStatus=2 4`).\n";
}

}  // namespace outbox::commands
