#include "tests/support/fault_proxy.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <future>
#include <list>
#include <optional>
#include <thread>
#include <utility>

namespace outbox::test {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Failed = boost::system::error_code;

constexpr std::size_t remembered_bytes = 16 << 10;

tcp::endpoint loopback(std::uint16_t port) {
  return {asio::ip::address_v4::loopback(), port};
}

void close(tcp::socket& socket) {
  Failed ignored;
  socket.close(ignored);
}

void reset(tcp::socket& socket) {
  Failed ignored;
  socket.set_option(asio::socket_base::linger(true, 0), ignored);
  socket.close(ignored);
}

/// One direction of a connection: reads a piece, keeps it as long as it must, passes it on.
struct Pump {
  Pump(tcp::socket& source, tcp::socket& target, asio::io_context& loop)
      : from(source), to(target), timer(loop) {}
  tcp::socket& from;
  tcp::socket& to;
  asio::steady_timer timer;
  std::array<char, 16 << 10> piece{};
  std::size_t size = 0;
  Millis latency{0};
  bool blackhole = false;
  bool parked = false;  // a piece waits for the blackhole to end
  std::optional<std::size_t> left{};
};

}  // namespace

struct FaultProxy::State {
  State() : acceptor(loop, loopback(0)), guard(loop.get_executor()) {}

  // One client and the connection to the server that is made for it. Kept alive by its pending operations.
  struct Connection : std::enable_shared_from_this<Connection> {
    Connection(State& proxy, tcp::socket accepted)
        : state(proxy), client(std::move(accepted)), server(proxy.loop) {}

    void start() {
      server.async_connect(loopback(state.target), [self = shared_from_this()](const Failed& failed) {
        if (self->silent) return;  // half-open before the proxy heard that the server had taken it
        if (failed) return self->end_by(reset);
        Failed ignored;
        self->client.set_option(tcp::no_delay(true), ignored);
        self->server.set_option(tcp::no_delay(true), ignored);
        self->read(self->up);
        self->read(self->down);
      });
    }

    void read(Pump& pump) {
      pump.from.async_read_some(asio::buffer(pump.piece),
                                [&pump, self = shared_from_this()](const Failed& failed, std::size_t size) {
                                  if (failed) return self->ended(pump);
                                  pump.size = size;
                                  if (&pump == &self->up) self->listen_to(size);
                                  self->delay(pump);
                                });
    }

    // What the client says may be what a trigger waits for.
    void listen_to(std::size_t size) {
      const std::string_view text(up.piece.data(), size);
      if (said.size() < remembered_bytes) said += text;
      if (!state.trigger || text.find(state.trigger->second) == std::string_view::npos) return;
      const Fault fault = std::exchange(state.trigger, std::nullopt)->first;
      suffer(fault);
    }

    void delay(Pump& pump) {
      if (pump.latency.count() == 0) return pass(pump);
      pump.timer.expires_after(pump.latency);
      pump.timer.async_wait([&pump, self = shared_from_this()](const Failed&) { self->pass(pump); });
    }

    void pass(Pump& pump) {
      pump.parked = pump.blackhole;
      if (pump.parked) return;
      const bool last = pump.left && *pump.left <= pump.size;
      if (last) pump.size = *pump.left;
      if (pump.left) *pump.left -= pump.size;
      asio::async_write(pump.to, asio::buffer(pump.piece, pump.size),
                        [&pump, last, self = shared_from_this()](const Failed& failed, std::size_t) {
                          if (failed || last) return self->end_by(close);
                          self->read(pump);
                        });
    }

    // One end has closed: the other is told, unless nothing goes there.
    void ended(Pump& pump) {
      if (silent) return;
      if (!pump.blackhole) return end_by(close);
      end_later = true;
    }

    void suffer(const Fault& fault) {
      if (fault.kind == Fault::Kind::reset) return end_by(reset);
      if (fault.kind == Fault::Kind::half_open) {
        silent = up.blackhole = down.blackhole = true;
        return close(server);
      }
      if (fault.toward != Toward::client) suffer(up, fault);
      if (fault.toward != Toward::server) suffer(down, fault);
    }

    static void suffer(Pump& pump, const Fault& fault) {
      if (fault.kind == Fault::Kind::latency) pump.latency = fault.by;
      if (fault.kind == Fault::Kind::blackhole) pump.blackhole = true;
      if (fault.kind == Fault::Kind::truncate) pump.left = fault.bytes;
    }

    void heal() {
      if (silent) return;  // its server is gone for good
      if (end_later) return end_by(close);
      for (Pump* pump : {&up, &down}) {
        pump->latency = Millis{0};
        pump->blackhole = false;
        if (pump->parked) pass(*pump);
      }
    }

    void end_by(void (*way)(tcp::socket&)) {
      way(client);
      way(server);
    }

    State& state;
    tcp::socket client;
    tcp::socket server;
    Pump up{client, server, state.loop};
    Pump down{server, client, state.loop};
    std::string said;
    bool silent = false;
    bool end_later = false;
  };

  void accept() {
    acceptor.async_accept([this](const Failed& failed, tcp::socket socket) {
      if (failed) return;
      ++accepted;
      auto connection = std::make_shared<Connection>(*this, std::move(socket));
      connections.push_back(connection);
      if (fault_of_new) connection->suffer(*fault_of_new);
      if (connection->client.is_open() && !connection->silent) connection->start();
      accept();
    });
  }

  template <class Visit>
  void each_open(Visit visit) {
    connections.remove_if([&](const auto& connection) { return !connection->client.is_open(); });
    for (const auto& connection : connections) visit(*connection);
  }

  /// Runs `call` on the proxy's thread and waits for it.
  template <class Call>
  auto ask(Call call) {
    std::packaged_task<decltype(call())()> task(std::move(call));
    auto answer = task.get_future();
    asio::post(loop, [&task] { task(); });
    return answer.get();
  }

  asio::io_context loop;
  tcp::acceptor acceptor;
  asio::executor_work_guard<asio::io_context::executor_type> guard;
  std::list<std::shared_ptr<Connection>> connections;
  std::optional<std::pair<Fault, std::string>> trigger;
  std::optional<Fault> fault_of_new;
  std::uint16_t target = 0;
  int accepted = 0;
  std::thread thread;
};

FaultProxy::FaultProxy(std::uint16_t server_port) : state_(std::make_unique<State>()) {
  state_->target = server_port;
  state_->accept();
  state_->thread = std::thread([state = state_.get()] { state->loop.run(); });
}

FaultProxy::~FaultProxy() {
  state_->loop.stop();
  state_->thread.join();
}

std::uint16_t FaultProxy::port() const {
  return state_->acceptor.local_endpoint().port();
}

void FaultProxy::lead_to(std::uint16_t server_port) {
  state_->ask([&] { state_->target = server_port; });
}

int FaultProxy::inflict(const Fault& fault, std::string_view said) {
  return state_->ask([&] {
    int count = 0;
    state_->each_open([&](auto& connection) {
      if (connection.said.find(said) == std::string::npos) return;
      connection.suffer(fault);
      ++count;
    });
    return count;
  });
}

void FaultProxy::inflict_when(const Fault& fault, std::string text) {
  state_->ask([&] { state_->trigger.emplace(fault, std::move(text)); });
}

void FaultProxy::inflict_new(const Fault& fault) {
  state_->ask([&] { state_->fault_of_new = fault; });
}

void FaultProxy::heal() {
  state_->ask([&] {
    state_->trigger.reset();
    state_->fault_of_new.reset();
    state_->each_open([](auto& connection) { connection.heal(); });
  });
}

int FaultProxy::open() const {
  return state_->ask([&] {
    int count = 0;
    state_->each_open([&](auto&) { ++count; });
    return count;
  });
}

int FaultProxy::accepted() const {
  return state_->ask([&] { return state_->accepted; });
}

bool FaultProxy::waiting() const {
  return state_->ask([&] { return state_->trigger.has_value(); });
}

}  // namespace outbox::test
