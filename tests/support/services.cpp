#include "tests/support/services.hpp"

#include <cstdlib>
#include <fstream>

namespace outbox::test {

std::optional<std::string> service_address(std::string_view name) {
  const std::string wanted(name);
  if (const char* value = std::getenv(wanted.c_str()); value && *value) return value;
  const char* file = std::getenv("OUTBOX_TEST_SERVICES");
  if (!file) return std::nullopt;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(wanted + "=") && line.size() > wanted.size() + 1)
      return line.substr(wanted.size() + 1);
  }
  return std::nullopt;
}

}  // namespace outbox::test
