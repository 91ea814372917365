#pragma once
// The command line as other programs want it: a man page and shell completions, all walked out of the one
// table that CLI11 parses by, so that none can be stale. Pure.

#include <string>

namespace CLI {
class App;
}

namespace outbox::commands {

/// outboxd(1), as roff: every command with its options, the exit statuses, the files.
[[nodiscard]] std::string man_page(const CLI::App& app, const std::string& version);

/// Shape: words after which words can follow, for `bash`, `zsh` or `fish`; empty: no such shell.
[[nodiscard]] std::string completion(const CLI::App& app, const std::string& shell);

}  // namespace outbox::commands
