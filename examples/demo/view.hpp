#pragma once
// What the audience sees while it runs: on a terminal one line that is redrawn, with events above it;
// elsewhere plain lines, one a second at most.

#include <chrono>
#include <string>

#include "examples/demo/progress.hpp"

namespace demo {

class View {
 public:
  View();
  ~View();
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  void say(const std::string& text);  ///< a line that stays
  void show(const Progress& progress, std::int64_t expected);
  [[nodiscard]] double seconds() const;

 private:
  bool terminal_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point shown_{};
};

/// 12345 as "12,345".
[[nodiscard]] std::string grouped(std::int64_t n);

}  // namespace demo
