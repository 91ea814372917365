#include "relay/metrics/process_figures.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace outbox::relay {
namespace {

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
}

}  // namespace

ProcessUse process_use() {
  ProcessUse out;
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) == 0) out.cpu_seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
  std::int64_t size = 0;
  std::int64_t resident = 0;
  if (std::ifstream statm{"/proc/self/statm"}; statm >> size >> resident)
    out.resident_bytes = resident * ::sysconf(_SC_PAGESIZE);
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator{"/proc/self/fd", error};
       !error && it != std::filesystem::directory_iterator{}; it.increment(error))
    out.open_fds += 1;
  return out;
}

}  // namespace outbox::relay
