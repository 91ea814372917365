#pragma once
// Host names in a uri, looked up before libpq gets them: libpq's own look-up blocks, for as long as a silent
// name server likes, and a loop that stands still neither renews a lease nor stops publishing. Pure; private
// to pg/.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace outbox::pg {

using Keywords = std::vector<std::pair<std::string, std::string>>;
using Addresses = std::map<std::string, std::vector<std::string>>;  ///< by host name

/// The hosts that are neither an address nor the folder of a socket; none where the uri gives hostaddr
/// itself.
[[nodiscard]] std::vector<std::string> names_to_look_up(const Keywords& keywords);

/// The same keywords with `hostaddr`: a host with several addresses is repeated, with its port, for each of
/// them. A name without an address is left out; nullopt: no host is left.
[[nodiscard]] std::optional<Keywords> with_addresses(const Keywords& keywords, const Addresses& found);

}  // namespace outbox::pg
