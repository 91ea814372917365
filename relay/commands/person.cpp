#include "relay/commands/person.hpp"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

namespace outbox::commands {

std::string person() {
  if (const char* sudo = std::getenv("SUDO_USER"); sudo != nullptr && *sudo != '\0') return sudo;
  const passwd* user = ::getpwuid(::geteuid());
  return user != nullptr ? user->pw_name : std::to_string(::geteuid());
}

}  // namespace outbox::commands
