#pragma once
// What a running process takes from its file again: who it is and whom it trusts. Passwords and certificates
// are renewed while it works; where its servers are is not. Used by the daemon's reload. Any thread.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "relay/config/config.hpp"

namespace outbox::commands {

/// Shape: puts into `running` the credentials of `read`, pipeline by pipeline, and answers which options that
/// changed: "pipelines[payments].postgres.uri". A uri that leads elsewhere is not taken.
std::vector<std::string> take_credentials(config::Config& running, const config::Config& read);

/// Shape: a digest of the files that the properties name, so that one which was renewed under its old name is
/// noticed. A file that cannot be read counts as empty.
[[nodiscard]] std::size_t digest_of_files(const std::map<std::string, std::string>& kafka);

}  // namespace outbox::commands
