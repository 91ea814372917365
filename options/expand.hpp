#pragma once
// Values that come from outside the file: `${NAME}`, `${NAME:-default}`, `$$` for one `$`, and for secrets a
// value that is `file:/path` as a whole. What is put in is not read again, neither as YAML nor for another
// `${…}`.

#include <tl/expected.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace outbox::config {

/// The process's surroundings, or a test's.
struct Surroundings {
  std::function<std::optional<std::string>(const std::string& name)> variable;
  /// Errors: why it cannot be read: "No such file or directory".
  std::function<tl::expected<std::string, std::string>(const std::string& path)> file;
};
/// getenv, and files of at most 64 KiB.
[[nodiscard]] Surroundings process_surroundings();

enum class MayNameFile { no, yes };

struct Expanded {
  std::string text;
  std::string from;  ///< "${PGURI}" or "file:/run/secrets/uri"; empty: written in the file as it is
};

/// Errors: the rest of a sentence: "names ${PGURI}, which is not set: set it or write ${PGURI:-default}".
/// Line ends at the end of a file are dropped; an empty file is an error.
[[nodiscard]] tl::expected<Expanded, std::string> expand(std::string_view raw, MayNameFile may_name_file,
                                                         const Surroundings& surroundings);

}  // namespace outbox::config
