#pragma once
// A small HTTP server for what may be read of a running relay: GET and HEAD, nothing else. It shares the loop
// with the money path, so everything of it is bounded: connections, header, body, time to send a request,
// time to take an answer, requests a connection. Where its address is taken it says so once and tries again.
// Lifecycle: constructed → start() → stop(). Thread: the loop's; `answer` is called on it and must not block.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "relay/http/listen_address.hpp"

namespace boost::asio {
class io_context;
}

namespace outbox::relay {

struct HttpLimits {
  std::size_t connections = 32;  ///< more are closed at once
  std::uint32_t header_bytes = 8192;
  std::uint64_t body_bytes = 1024;  ///< nobody needs one here
  Millis request_time{5000};        ///< for a whole request, from its connection's opening or the last answer
  Millis answer_time{10'000};       ///< for the peer to take an answer
  int requests = 1000;              ///< of one connection
};

struct HttpAnswer {
  int status = 200;
  std::string_view content_type = "text/plain; charset=utf-8";
  std::string body{};
};

struct HttpTotals {
  std::int64_t answered = 0;
  std::int64_t refused = 0;  ///< connections refused, or cut for what they sent or did not
};

class HttpServer {
 public:
  /// `target`: the path as it was asked for, without the query. `accept`: the field of that name, or empty.
  using Answer = std::function<HttpAnswer(std::string_view target, std::string_view accept)>;
  /// Listening, or why not: changes only.
  using Told = std::function<void(const Status&)>;

  HttpServer(boost::asio::io_context& loop, ListenAddress address, HttpLimits limits, Answer answer);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  void start(Told told);
  void stop();
  [[nodiscard]] const HttpTotals& totals() const;
  /// The TCP port that was bound; 0 before, and for a unix socket.
  [[nodiscard]] std::uint16_t port() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace outbox::relay
