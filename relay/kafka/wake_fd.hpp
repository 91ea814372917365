#pragma once
// An eventfd that other threads write to, to give the loop's thread a turn. For the sources of this folder
// only.

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <functional>

namespace outbox::relay {

class WakeFd {
 public:
  /// `turn` is called on the loop's thread, from watch() on, each time the fd has become readable; it clears
  /// the fd by clear() and then empties what it guards. Errors: std::system_error while booting, where no fd
  /// can be had.
  WakeFd(boost::asio::io_context& context, std::function<void()> turn);

  void watch();
  void clear() noexcept;
  /// No turn comes any more. Only after the writers are gone or silent: the number may be another file's at
  /// once.
  void close();
  [[nodiscard]] int fd() { return descriptor_.native_handle(); }

 private:
  boost::asio::posix::stream_descriptor descriptor_;
  std::function<void()> turn_;
};

}  // namespace outbox::relay
