#include "pg/connection.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fcntl.h>

#include "pg/canceller.hpp"
#include "pg/pipeline.hpp"

namespace outbox::pg {
namespace {

namespace asio = boost::asio;
using Descriptor = asio::posix::stream_descriptor;

enum class Phase { idle, waiting, connecting, greeting, up, stopped };

// A resolver goes through its name servers for half a minute before it says that there is no such host; until
// then another host of the same uri must not be given up.
constexpr Millis look_up_limit{60'000};

constexpr const char* backend_pid = "SELECT pg_backend_pid()";

MonoTime now() {
  return std::chrono::steady_clock::now();
}

}  // namespace

// Every handler that waits for something belongs to one attempt to connect, by its number; those of an
// earlier attempt find another number and do nothing.
struct Connection::State : std::enable_shared_from_this<State> {
  State(asio::io_context& l, Options o, Events e)
      : loop(l),
        options(std::move(o)),
        events(std::move(e)),
        backoff(options.backoff, options.seed),
        socket(l),
        resolver(l),
        retry_timer(l),
        deadline_timer(l) {}

  asio::io_context& loop;
  Options options;
  Events events;
  Backoff backoff;
  Phase phase = Phase::idle;
  std::uint64_t attempt = 0;
  ConnectionHandle connecting;
  std::unique_ptr<Pipeline> pipeline;
  std::optional<Canceller> canceller;
  Descriptor socket;  // a duplicate: libpq closes and reopens its own at will
  asio::ip::tcp::resolver resolver;
  asio::steady_timer retry_timer;
  asio::steady_timer deadline_timer;
  std::optional<MonoTime> armed_for;
  bool awaiting_write = false;
  bool delivery_posted = false;
  Answers answers;
  int server_version = 0;
  bool pooled = false;

  // Wraps a member function as a handler of this attempt.
  template <class Next>
  auto mine(Next next) {
    return [self = shared_from_this(), number = attempt, next](const boost::system::error_code& error) {
      if (self->attempt == number && error != asio::error::operation_aborted) next(*self);
    };
  }

  // --- connecting ----------------------------------------------------------------------------------------

  void connect() {
    phase = Phase::connecting;
    ++attempt;
    auto keywords = connection_keywords(options.connect);
    if (!keywords) return down(keywords.error());
    give_up_after(look_up_limit);
    const auto names = names_to_look_up(*keywords);
    if (names.empty()) return begin(*keywords);
    look_up(names, {}, *keywords);
  }

  // One name after the other; Asio has a thread for the look-up, which blocks.
  void look_up(std::vector<std::string> names, const Addresses& found, const Keywords& keywords) {
    const std::string name = names.back();
    names.pop_back();
    resolver.async_resolve(
        name, "",
        [=, this, self = shared_from_this(), number = attempt](const boost::system::error_code& error,
                                                               const auto& results) {
          if (attempt != number) return;
          Addresses more = found;
          for (const auto& entry : results) more[name].push_back(entry.endpoint().address().to_string());
          if (!names.empty()) return look_up(names, more, keywords);
          if (const auto with = with_addresses(keywords, more)) return begin(*with);
          down({Disposition::retry, {}, "host '" + name + "' was not found: " + error.message(), {}});
        });
  }

  void begin(const Keywords& keywords) {
    auto begun = begin_connection(keywords, options.connect);
    if (!begun) return down(begun.error());
    connecting = std::move(begun->connection);
    give_up_after(begun->limit);
    wait_to_connect(Descriptor::wait_write);
  }

  void give_up_after(Millis limit) {
    retry_timer.expires_after(limit);
    retry_timer.async_wait(mine([limit](State& s) {
      s.down({Disposition::retry,
              {},
              "no answer from PostgreSQL within " + std::to_string(limit.count()) + " ms",
              "see connect_timeout"});
    }));
  }

  void wait_to_connect(Descriptor::wait_type what) {
    if (!watch(PQsocket(connecting.get()))) return down(connect_error(connecting.get()));
    socket.async_wait(what, mine([](State& s) { s.poll_connect(); }));
  }

  void poll_connect() {
    switch (PQconnectPoll(connecting.get())) {
      case PGRES_POLLING_READING:
        return wait_to_connect(Descriptor::wait_read);
      case PGRES_POLLING_WRITING:
        return wait_to_connect(Descriptor::wait_write);
      case PGRES_POLLING_OK:
        return greet();
      default:
        return down(connect_error(connecting.get()));
    }
  }

  bool watch(int fd) {
    const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return false;
    boost::system::error_code ignored;
    socket.close(ignored);
    socket.assign(copy, ignored);
    return !ignored;
  }

  void greet() {
    phase = Phase::greeting;
    PGconn* raw = connecting.get();
    established(raw);
    server_version = PQserverVersion(raw);
    canceller.emplace(raw);
    // Nothing is prepared before it is known who answers.
    pipeline = std::make_unique<Pipeline>(std::move(connecting), Naming::unnamed);
    if (!watch(PQsocket(raw))) return down(pipeline->loss());
    await_read();
    greet({backend_pid}, &State::met);
  }

  void greet(const std::vector<std::string>& statements, void (State::*next)(const std::vector<Rows>&)) {
    Segment greeting{.deadline = options.connect.connect_timeout};
    for (const std::string& sql : statements)
      greeting.statements.push_back({std::make_shared<const std::string>(sql), {}, {}});
    send(std::move(greeting), [self = weak_from_this(), next](const Result<std::vector<Rows>>& result) {
      const auto state = self.lock();
      if (!state || state->phase != Phase::greeting)
        return;  // the connection broke meanwhile, which was said
      if (result) return ((*state).*next)(*result);
      Error error = result.error();
      error.message = "the first statements on a new connection: " + error.message;
      state->down(error);
    });
  }

  // A pooler makes up the key by which a client cancels; a server gives its process's number.
  void met(const std::vector<Rows>& answer) {
    pooled = answer.front().integer(0, 0) != PQbackendPID(pipeline->raw());
    if (!pooled) pipeline->use(options.naming);
    std::vector<std::string> statements;
    if (!has_iso_dates(pipeline->raw())) statements.emplace_back(set_iso_dates);
    if (!pooled) statements.insert(statements.end(), options.on_connect.begin(), options.on_connect.end());
    if (statements.empty()) return become_up();
    greet(statements, &State::greeted);
  }

  void greeted(const std::vector<Rows>&) { become_up(); }

  void become_up() {
    phase = Phase::up;
    retry_timer.cancel();
    backoff.reset();
    if (events.on_up) events.on_up();
  }

  // --- up ------------------------------------------------------------------------------------------------

  void send(Segment segment, Done done) {
    const MonoTime deadline = now() + segment.deadline;
    pipeline->push(std::move(segment), std::move(done), deadline);
    if (!armed_for || deadline < *armed_for) arm(deadline);
    flush();
  }

  // Called from run(), so a loss is only noted here: the callbacks that it means come from the loop.
  void flush() {
    if (awaiting_write) return;
    switch (pipeline->flush()) {
      case Flushed::all:
        return;
      case Flushed::partly:
        awaiting_write = true;
        return socket.async_wait(Descriptor::wait_write, mine([](State& s) {
                                   s.awaiting_write = false;
                                   s.flush();
                                 }));
      case Flushed::broken:
        return asio::post(loop, [next = mine([](State& s) { s.on_readable(); })] { next({}); });
    }
  }

  void await_read() {
    socket.async_wait(Descriptor::wait_read, mine([](State& s) { s.on_readable(); }));
  }

  void on_readable() {
    const std::uint64_t number = attempt;
    const bool alive = pipeline->read(answers);
    deliver();
    while (attempt == number && phase != Phase::stopped) {
      const auto channel = pipeline->notification();
      if (!channel) break;
      if (events.on_notify) events.on_notify(*channel);
    }
    if (attempt != number || phase == Phase::stopped) return;
    if (!alive) return down(pipeline->loss());
    await_read();
  }

  void arm(MonoTime at) {
    armed_for = at;
    deadline_timer.expires_at(at);
    deadline_timer.async_wait(mine([](State& s) { s.on_deadline(); }));
  }

  // The timer is left alone while segments come and go, and finds out when it fires what is still pending.
  void on_deadline() {
    armed_for.reset();
    switch (pipeline->overdue(now())) {
      case Overdue::drop:
        return down({Disposition::reconnect,
                     {},
                     "PostgreSQL did not answer within the deadline of a statement, nor to its "
                     "cancellation; the connection was dropped",
                     {}});
      case Overdue::cancel:
        canceller->request();
        break;
      case Overdue::none:
        break;
    }
    if (const auto next = pipeline->next_deadline()) arm(*next);
  }

  // --- ends ----------------------------------------------------------------------------------------------

  void close(const std::string& reason) {
    ++attempt;
    boost::system::error_code ignored;
    socket.close(ignored);
    resolver.cancel();
    retry_timer.cancel();
    deadline_timer.cancel();
    armed_for.reset();
    awaiting_write = false;
    if (pipeline) pipeline->abandon(reason, answers);
    pipeline.reset();
    connecting.reset();
    canceller.reset();
  }

  void down(const Error& error) {
    phase = Phase::waiting;
    close(error.message);
    retry_timer.expires_after(backoff.next());
    retry_timer.async_wait(mine([](State& s) { s.connect(); }));
    if (events.on_down) events.on_down(error);
    deliver();
  }

  void deliver() {
    while (!answers.empty()) {
      Answer answer = std::move(answers.front());
      answers.pop_front();
      if (answer.done) answer.done(std::move(answer.result));
    }
  }

  void answer_later(Answer answer) {
    answers.push_back(std::move(answer));
    if (std::exchange(delivery_posted, true)) return;
    asio::post(loop, [self = shared_from_this()] {
      self->delivery_posted = false;
      self->deliver();
    });
  }
};

Connection::Connection(asio::io_context& loop, Options options, Events events)
    : state_(std::make_shared<State>(loop, std::move(options), std::move(events))) {}

Connection::~Connection() {
  state_->phase = Phase::stopped;
  state_->close("");
  state_->answers.clear();
}

void Connection::start() {
  if (state_->phase != Phase::idle) return;
  state_->phase = Phase::waiting;
  asio::post(state_->loop, [next = state_->mine([](State& s) { s.connect(); })] { next({}); });
}

void Connection::set_uri(std::string uri) {
  state_->options.connect.uri = std::move(uri);
}

void Connection::run(Segment segment, Done done) {
  if (state_->phase == Phase::up) return state_->send(std::move(segment), std::move(done));
  if (state_->phase == Phase::stopped) return;
  state_->answer_later(
      {std::move(done), failure(Disposition::reconnect, "there is no connection to PostgreSQL")});
}

bool Connection::up() const {
  return state_->phase == Phase::up;
}
bool Connection::pooled() const {
  return state_->pooled;
}
std::size_t Connection::pending() const {
  return state_->pipeline ? state_->pipeline->pending() : 0;
}
int Connection::server_version() const {
  return state_->server_version;
}

void Connection::stop() {
  state_->phase = Phase::stopped;
  state_->close("the connection to PostgreSQL was closed");
  state_->deliver();
}

}  // namespace outbox::pg
