#include "relay/kafka/wake_fd.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

namespace outbox::relay {
namespace {

int new_eventfd() {
  const int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  return fd;
}

}  // namespace

WakeFd::WakeFd(boost::asio::io_context& context, std::function<void()> turn)
    : descriptor_(context, new_eventfd()), turn_(std::move(turn)) {}

void WakeFd::watch() {
  descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                         [this](boost::system::error_code error) {
                           if (error) return;  // closed: this object may be gone
                           turn_();
                           if (descriptor_.is_open()) watch();
                         });
}

void WakeFd::clear() noexcept {
  std::uint64_t count = 0;
  // Nothing to read is as good: it was cleared before.
  [[maybe_unused]] const auto size = ::read(descriptor_.native_handle(), &count, sizeof count);
}

void WakeFd::close() {
  boost::system::error_code ignored;
  descriptor_.close(ignored);
}

}  // namespace outbox::relay
