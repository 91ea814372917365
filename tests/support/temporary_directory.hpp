#pragma once
// A folder of the test's own under $TMPDIR, readable by everybody, deleted with this object.
// OUTBOX_TEST_KEEP=1 keeps it.

#include <filesystem>
#include <string_view>

namespace outbox::test {

class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(std::string_view prefix = "outbox-test");
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// The file's whole content; empty where there is no such file.
[[nodiscard]] std::string read_file(const std::filesystem::path& file);
void write_file(const std::filesystem::path& file, std::string_view content);

}  // namespace outbox::test
