#pragma once
// Who runs the program, for what is kept about an operator's action. Thread: any.

#include <string>

namespace outbox::commands {

/// Who ran sudo, else the user of this process. The database knows the role, which several people may share;
/// this is as far as the program can tell who it was.
[[nodiscard]] std::string person();

}  // namespace outbox::commands
