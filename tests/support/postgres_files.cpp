#include "tests/support/postgres_files.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "tests/support/process.hpp"

namespace outbox::test {
namespace {

namespace fs = std::filesystem;

constexpr Millis tool_deadline{60'000};

void run_tool(const std::string& program, ProcessOptions options) {
  const Finished done = run_program(program, std::move(options), tool_deadline);
  if (done.status != ExitStatus{0, 0})
    throw std::runtime_error(program + " failed: " + done.errors + done.output);
}

// By cp, which keeps the owner; and the server's user may not be able to enter the build tree.
void copy_folder(const fs::path& from, const fs::path& to) {
  run_tool("cp", {.args = {"-a", "--reflink=auto", from.string(), to.string()}});
}

void initdb(const TemporaryDirectory& scratch) {
  const auto user = postgres_user();
  if (user && ::chown(scratch.path().c_str(), user->first, user->second) != 0)
    throw std::runtime_error("chown failed");
  run_tool(postgres_program("initdb"),
           {.args = {"--pgdata", scratch / "data", "--username", "postgres", "--auth", "trust", "--encoding",
                     "UTF8", "--locale", "C.UTF-8", "--no-sync"},
            .folder = scratch.path(),
            .user = user});
}

// Several test programs may come here at once: each makes its own and moves it into place; one wins.
fs::path template_folder() {
  const fs::path program = postgres_program("postgres");
  const fs::path version = program.parent_path().parent_path().filename();
  fs::path folder = fs::path(OUTBOX_TEST_CACHE) / ("postgres-" + version.string());
  if (fs::exists(folder / "PG_VERSION")) return folder;
  const TemporaryDirectory scratch{"outbox-initdb"};
  initdb(scratch);
  fs::create_directories(folder.parent_path());
  const fs::path mine = folder.string() + "." + std::to_string(::getpid());
  copy_folder(scratch / "data", mine);
  std::error_code lost;
  fs::rename(mine, folder, lost);
  if (lost) fs::remove_all(mine);
  return folder;
}

}  // namespace

std::string postgres_program(const std::string& name) {
  std::vector<std::pair<int, fs::path>> found;
  std::error_code none;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", none)) {
    const fs::path program = version.path() / "bin" / name;
    if (fs::exists(program)) found.emplace_back(std::atoi(version.path().filename().c_str()), program);
  }
  if (found.empty())
    throw std::runtime_error("no PostgreSQL server here: ./dev setup, or set OUTBOX_TEST_POSTGRES");
  return std::max_element(found.begin(), found.end())->second;
}

std::optional<std::pair<uid_t, gid_t>> postgres_user() {
  if (::geteuid() != 0) return std::nullopt;
  const passwd* user = ::getpwnam("postgres");
  if (!user) throw std::runtime_error("a test that runs as root needs the user postgres for its server");
  return std::pair{user->pw_uid, user->pw_gid};
}

void make_data_folder(const fs::path& folder) {
  copy_folder(template_folder(), folder);
}

}  // namespace outbox::test
