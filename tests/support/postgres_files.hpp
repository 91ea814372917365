#pragma once
// The files of a PostgreSQL server: its programs, and a fresh data folder. initdb takes a second, so its
// result is kept in the build tree and copied. Private to tests/support.

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

namespace outbox::test {

/// Of the newest server installed. Throws where there is none.
[[nodiscard]] std::string postgres_program(const std::string& name);
/// Whom the server runs as; nullopt: this user will do. It refuses to run as root.
[[nodiscard]] std::optional<std::pair<uid_t, gid_t>> postgres_user();
/// `folder` becomes the data folder of a new cluster, superuser postgres, locale C.UTF-8.
void make_data_folder(const std::filesystem::path& folder);

}  // namespace outbox::test
