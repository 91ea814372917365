#pragma once
// A non-blocking connection on the event loop, always in pipeline mode. Work comes in segments: the
// statements of one segment are one implicit transaction and end with a SYNC, so `set_config(..., true)` in
// its first statement holds for the others, and a durable commit is done when the segment's reply is.
//
// Lifecycle: constructed → start() → reconnects forever with jittered backoff → stop(). All calls and all
// callbacks are on the thread that runs the io_context. Callbacks are never made from inside run().

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/backoff.hpp"
#include "base/result.hpp"
#include "pg/params.hpp"
#include "pg/rows.hpp"
#include "pg/session.hpp"

namespace boost::asio {
class io_context;
}

namespace outbox::pg {

enum class Naming {
  named,    ///< each distinct text is prepared once per connection; unnamed where a pooler is found
  unnamed,  ///< nothing is kept on the server: works behind a pooler in transaction mode
};

struct Statement {
  std::shared_ptr<const std::string> sql;  ///< its address is the key of the prepared statement
  Params params;
  Format results = Format::binary;
};

struct Segment {
  std::vector<Statement> statements{};
  /// From run(); then the server is asked to cancel what it runs, and 2 s later the connection is dropped.
  Millis deadline{30'000};
};

class Connection {
 public:
  /// Shape: the results of the statements in order. Errors: a statement failed: its class, nothing of the
  /// segment took effect; the connection was down or broke before the SYNC was sent: reconnect; broke after:
  /// in_doubt.
  using Done = std::function<void(Result<std::vector<Rows>>)>;

  struct Options {
    ConnectOptions connect;
    Naming naming = Naming::named;
    BackoffOptions backoff{Millis{100}, Millis{5000}};
    std::uint64_t seed = 1;  ///< of the jitter
    /// Run first after each connect (LISTEN …); quoted already. Left out behind a pooler, which would give
    /// what they set to somebody else.
    std::vector<std::string> on_connect{};
  };
  struct Events {
    std::function<void()> on_up;                              ///< after each connect, when on_connect ran
    std::function<void(const Error&)> on_down;                ///< once per loss or failed attempt
    std::function<void(std::string_view channel)> on_notify;  ///< a NOTIFY on a channel that was LISTENed to
  };

  Connection(boost::asio::io_context& loop, Options options, Events events);
  /// Closes without a callback, also for pending segments; stop() answers those.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start();
  /// From the next connect on; what is connected stays so. For other credentials of the same server.
  void set_uri(std::string uri);
  /// Queues a segment behind those before it. While the connection is down the answer is an error, soon,
  /// never a wait.
  void run(Segment segment, Done done);
  [[nodiscard]] bool up() const;
  /// A pooler stands between: the process that answers is not the one that libpq was told of. From the first
  /// connect on.
  [[nodiscard]] bool pooled() const;
  /// Segments queued or awaiting their reply.
  [[nodiscard]] std::size_t pending() const;
  [[nodiscard]] int server_version() const;
  /// Closes; every pending segment answers with an error, from inside this call. No callback comes later.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace outbox::pg
