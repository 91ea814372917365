#include <doctest/doctest.h>

#include <algorithm>

#include "pg/addresses.hpp"

namespace outbox::pg {
namespace {

std::string value(const Keywords& keywords, const std::string& name) {
  const auto found =
      std::find_if(keywords.begin(), keywords.end(), [&](const auto& k) { return k.first == name; });
  return found == keywords.end() ? "(none)" : found->second;
}

}  // namespace

TEST_CASE("only names are looked up, not addresses, socket folders or hosts whose address is given") {
  using Names = std::vector<std::string>;
  CHECK(names_to_look_up({{"host", "db.example,10.0.0.1,::1,fe80::1%eth0,/run/pg,@abstract,"}}) ==
        Names{"db.example"});
  CHECK(names_to_look_up({{"host", "db.example"}, {"hostaddr", "10.0.0.1"}}).empty());
  CHECK(names_to_look_up({{"dbname", "d"}}).empty());
}

TEST_CASE("each address of a host is tried, with the host's own port, in the uri's order") {
  const Keywords uri{{"dbname", "d"}, {"host", "a,/run/pg,b"}, {"port", "1,2,3"}};
  const Keywords with = with_addresses(uri, {{"a", {"10.0.0.1", "::1"}}, {"b", {"10.0.0.2"}}}).value();
  CHECK(value(with, "host") == "a,a,/run/pg,b");
  CHECK(value(with, "hostaddr") == "10.0.0.1,::1,,10.0.0.2");
  CHECK(value(with, "port") == "1,1,2,3");
  CHECK(value(with, "dbname") == "d");
}

TEST_CASE("one port serves all hosts, and a name without an address is left out") {
  const Keywords with = with_addresses({{"host", "a,b"}, {"port", "5433"}}, {{"b", {"10.0.0.2"}}}).value();
  CHECK(value(with, "host") == "b");
  CHECK(value(with, "hostaddr") == "10.0.0.2");
  CHECK(value(with, "port") == "5433");
  const Keywords silent = with_addresses({{"host", "a"}}, {{"a", {"10.0.0.1", "10.0.0.2"}}}).value();
  CHECK(value(silent, "port") == ",");  // empty: libpq's default
  CHECK(!with_addresses({{"host", "a,b"}}, {}));
  CHECK(value(with_addresses({{"host", "a,10.0.0.9"}}, {}).value(), "host") == "10.0.0.9");
}
}  // namespace outbox::pg
