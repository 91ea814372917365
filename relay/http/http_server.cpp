#include "relay/http/http_server.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include <filesystem>
#include <optional>
#include <utility>

#include "relay/http/http_connection.hpp"

namespace outbox::relay {
namespace {

constexpr Millis bind_again{5000};
constexpr Millis accept_again{100};  // after a failure such as too many open files

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::local::stream_protocol;

Error cannot_listen(const ListenAddress& address, const boost::system::error_code& why) {
  return {Disposition::retry, "", "cannot listen on " + to_string(address) + ": " + why.message(), ""};
}

// A socket that a killed process left behind would be in the way forever; one that somebody listens on is
// left.
void remove_stale(asio::io_context& loop, const std::string& path) {
  boost::system::error_code error;
  stream_protocol::socket probe(loop);
  probe.connect(stream_protocol::endpoint{path}, error);
  if (error != asio::error::connection_refused) return;
  std::error_code ignored;
  if (std::filesystem::is_socket(path, ignored)) std::filesystem::remove(path, ignored);
}

}  // namespace

struct HttpServer::State : std::enable_shared_from_this<State> {
  State(asio::io_context& l, ListenAddress a, HttpLimits m, Answer f)
      : loop(l),
        address(std::move(a)),
        limits(m),
        answer(std::move(f)),
        tcp_acceptor(l),
        unix_acceptor(l),
        timer(l) {}

  void listen();
  template <class Acceptor, class Endpoint>
  boost::system::error_code open(Acceptor& acceptor, const Endpoint& endpoint);
  boost::system::error_code open();
  void accept();
  template <class Acceptor>
  void accept_from(Acceptor& acceptor);
  template <class Socket>
  void take(Socket socket);
  void later(Millis pause, void (State::*what)());
  void tell(const Status& status);

  asio::io_context& loop;
  ListenAddress address;
  HttpLimits limits;
  Answer answer;
  Told told;
  std::optional<bool> told_well;
  tcp::acceptor tcp_acceptor;
  stream_protocol::acceptor unix_acceptor;
  asio::steady_timer timer;
  HttpConnections connections;
  HttpTotals totals;
  bool stopped = false;
};

void HttpServer::State::tell(const Status& status) {
  if (std::exchange(told_well, status.has_value()) == status.has_value()) return;
  if (told) told(status);
}

void HttpServer::State::later(Millis pause, void (State::*what)()) {
  timer.expires_after(pause);
  timer.async_wait([weak = weak_from_this(), what](const boost::system::error_code& error) {
    if (const auto self = weak.lock(); !error && self && !self->stopped) (self.get()->*what)();
  });
}

template <class Acceptor, class Endpoint>
boost::system::error_code HttpServer::State::open(Acceptor& acceptor, const Endpoint& endpoint) {
  boost::system::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(typename Acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    boost::system::error_code ignored;
    acceptor.close(ignored);
  }
  return error;
}

boost::system::error_code HttpServer::State::open() {
  if (const auto* at = std::get_if<TcpAddress>(&address))
    return open(tcp_acceptor, tcp::endpoint{asio::ip::make_address(at->address), at->port});
  const std::string& path = std::get<UnixAddress>(address).path;
  remove_stale(loop, path);
  const auto error = open(unix_acceptor, stream_protocol::endpoint{path});
  std::error_code ignored;
  if (!error)
    std::filesystem::permissions(path, std::filesystem::perms{0660}, std::filesystem::perm_options::replace,
                                 ignored);
  return error;
}

void HttpServer::State::listen() {
  const auto error = open();
  if (error) {
    tell(tl::unexpected(cannot_listen(address, error)));
    return later(bind_again, &State::listen);
  }
  tell({});
  accept();
}

void HttpServer::State::accept() {
  if (tcp_acceptor.is_open())
    accept_from(tcp_acceptor);
  else
    accept_from(unix_acceptor);
}

template <class Acceptor>
void HttpServer::State::accept_from(Acceptor& acceptor) {
  acceptor.async_accept([weak = weak_from_this()](const boost::system::error_code& error, auto socket) {
    const auto self = weak.lock();
    if (!self || self->stopped) return;
    if (error) return self->later(accept_again, &State::accept);
    self->take(std::move(socket));
    self->accept();
  });
}

template <class Socket>
void HttpServer::State::take(Socket socket) {
  if (connections.size() >= limits.connections) {
    totals.refused += 1;
    return;  // the socket closes
  }
  HttpRules rules{
      .limits = limits,
      .host_allowed = [this](std::string_view host) { return host_allowed(address, host); },
      .answer = [this](std::string_view target, std::string_view accept) { return answer(target, accept); },
      .on_answered = [this] { totals.answered += 1; },
      .on_refused = [this] { totals.refused += 1; }};
  connections.add(std::move(socket), std::move(rules));
}

// ---------------------------------------------------------------------------------------------------------------------

HttpServer::HttpServer(asio::io_context& loop, ListenAddress address, HttpLimits limits, Answer answer)
    : state_(std::make_shared<State>(loop, std::move(address), limits, std::move(answer))) {}

HttpServer::~HttpServer() {
  stop();
}

void HttpServer::start(Told told) {
  state_->told = std::move(told);
  if (!std::holds_alternative<NoAddress>(state_->address)) state_->listen();
}

void HttpServer::stop() {
  if (std::exchange(state_->stopped, true)) return;
  boost::system::error_code ignored;
  const bool unlink = state_->unix_acceptor.is_open();
  state_->tcp_acceptor.close(ignored);
  state_->unix_acceptor.close(ignored);
  state_->timer.cancel();
  state_->connections.close_all();
  std::error_code none;
  if (unlink) std::filesystem::remove(std::get<UnixAddress>(state_->address).path, none);
}

const HttpTotals& HttpServer::totals() const {
  return state_->totals;
}

std::uint16_t HttpServer::port() const {
  boost::system::error_code error;
  const auto endpoint = state_->tcp_acceptor.local_endpoint(error);
  return error ? std::uint16_t{0} : endpoint.port();
}

}  // namespace outbox::relay
