#pragma once
// The open connections of an HttpServer, each reading one request at a time. Private to it. Thread: the
// loop's.

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include <functional>
#include <memory>
#include <set>
#include <string_view>

#include "relay/http/http_server.hpp"

namespace outbox::relay {

/// What a connection is told by its server, which outlives it.
struct HttpRules {
  HttpLimits limits;
  std::function<bool(std::string_view host)> host_allowed;
  HttpServer::Answer answer;
  std::function<void()> on_answered;
  std::function<void()> on_refused;
};

class HttpConnections {
 public:
  /// One of them, whatever its socket.
  class Open {
   public:
    virtual ~Open() = default;
    virtual void close() = 0;
  };

  void add(boost::asio::ip::tcp::socket socket, HttpRules rules);
  void add(boost::asio::local::stream_protocol::socket socket, HttpRules rules);
  void close_all();
  [[nodiscard]] std::size_t size() const { return open_->size(); }

 private:
  template <class Protocol>
  void begin(typename Protocol::socket socket, HttpRules rules);
  // Shared: a connection that ends takes itself out, maybe after its server went.
  std::shared_ptr<std::set<std::shared_ptr<Open>>> open_ =
      std::make_shared<std::set<std::shared_ptr<Open>>>();
};

}  // namespace outbox::relay
