#include "pg/addresses.hpp"

#include <arpa/inet.h>

#include <algorithm>

namespace outbox::pg {
namespace {

std::string value_of(const Keywords& keywords, const std::string& name) {
  const auto found =
      std::find_if(keywords.begin(), keywords.end(), [&](const auto& k) { return k.first == name; });
  return found == keywords.end() ? "" : found->second;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts(1);
  for (const char c : list) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

bool is_address(const std::string& host) {
  in6_addr buffer{};
  const std::string without_scope = host.substr(0, host.find('%'));
  return ::inet_pton(AF_INET, without_scope.c_str(), &buffer) == 1 ||
         ::inet_pton(AF_INET6, without_scope.c_str(), &buffer) == 1;
}

bool is_name(const std::string& host) {
  return !host.empty() && host[0] != '/' && host[0] != '@' && !is_address(host);
}

void add(std::string& list, const std::string& part, bool first) {
  list.append(first ? "" : ",").append(part);
}

}  // namespace

std::vector<std::string> names_to_look_up(const Keywords& keywords) {
  if (!value_of(keywords, "hostaddr").empty()) return {};
  std::vector<std::string> names = split(value_of(keywords, "host"));
  std::erase_if(names, [](const std::string& host) { return !is_name(host); });
  return names;
}

std::optional<Keywords> with_addresses(const Keywords& keywords, const Addresses& found) {
  const std::vector<std::string> hosts = split(value_of(keywords, "host"));
  const std::vector<std::string> ports = split(value_of(keywords, "port"));
  std::string host_list;
  std::string address_list;
  std::string port_list;
  bool first = true;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const auto known = found.find(hosts[i]);
    // An empty hostaddr lets libpq take the host as it is: an address or a folder.
    const std::vector<std::string> as_it_is(is_name(hosts[i]) ? 0 : 1);
    for (const std::string& address : known == found.end() ? as_it_is : known->second) {
      add(host_list, hosts[i], first);
      add(address_list, address, first);
      add(port_list, ports.size() == hosts.size() ? ports[i] : ports[0], first);
      first = false;
    }
  }
  if (first) return std::nullopt;
  Keywords out = keywords;
  std::erase_if(out, [](const auto& k) { return k.first == "host" || k.first == "port"; });
  out.insert(out.end(), {{"host", host_list}, {"hostaddr", address_list}, {"port", port_list}});
  return out;
}

}  // namespace outbox::pg
