#include "base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace outbox {

void check_failed(const char* expression, const char* law, const char* file, int line) noexcept {
  std::fprintf(stderr, "outbox: broken invariant: %s [%s] at %s:%d\n", law, expression, file, line);
  std::abort();
}

}  // namespace outbox
