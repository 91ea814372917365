#pragma once
// Stands in for systemd: the socket that a service of Type=notify tells how it does.

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temporary_directory.hpp"

namespace outbox::test {

class NotifySocket {
 public:
  NotifySocket();
  ~NotifySocket();
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  [[nodiscard]] std::string path() const { return (folder_ / "notify").string(); }
  /// Every message so far, in order.
  const std::vector<std::string>& messages();
  /// How many of them start so.
  [[nodiscard]] std::ptrdiff_t count(std::string_view start);

 private:
  TemporaryDirectory folder_{"outbox-notify"};
  int fd_ = -1;
  std::vector<std::string> messages_;
};

}  // namespace outbox::test
