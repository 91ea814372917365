#include "tests/support/temporary_directory.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace outbox::test {

TemporaryDirectory::TemporaryDirectory(std::string_view prefix) {
  std::string pattern = std::filesystem::temp_directory_path() / (std::string(prefix) + ".XXXXXX");
  if (!::mkdtemp(pattern.data())) throw std::runtime_error("no temporary folder at " + pattern);
  ::chmod(pattern.c_str(), 0755);
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!std::getenv("OUTBOX_TEST_KEEP")) std::filesystem::remove_all(path_, ignored);
}

std::string read_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void write_file(const std::filesystem::path& file, std::string_view content) {
  std::ofstream out(file, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.flush();
  if (!out) throw std::runtime_error("cannot write " + file.string());
}

}  // namespace outbox::test
