#include "pg/session.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <map>
#include <utility>

#include "pg/canceller.hpp"
#include "pg/libpq.hpp"
#include "pg/sqlstate.hpp"

namespace outbox::pg {
namespace {

constexpr std::size_t flush_every = 16;    // statements: the server works while more are sent
constexpr std::size_t prepared_max = 256;  // plans kept per session; a text beyond is executed unprepared

enum class Wait { ready, late };

Wait wait_for(int socket, short events, MonoTime deadline) {
  while (true) {
    const auto left = std::chrono::ceil<Millis>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Wait::late;
    pollfd p{socket, events, 0};
    const int n = ::poll(&p, 1, static_cast<int>(left.count()));
    if (n > 0 || (n < 0 && errno != EINTR)) return Wait::ready;
  }
}

// PQconnectdb would do, but it can't be told to put the SQLSTATE into its message.
Status finish_connecting(PGconn* connection, Millis limit) {
  const MonoTime deadline = std::chrono::steady_clock::now() + limit;
  PostgresPollingStatusType next = PGRES_POLLING_WRITING;
  while (next != PGRES_POLLING_OK) {
    if (next == PGRES_POLLING_FAILED) return failure(connect_error(connection));
    const short events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    if (wait_for(PQsocket(connection), events, deadline) == Wait::late) {
      return failure(Disposition::retry,
                     "no answer from PostgreSQL within " + std::to_string(limit.count()) + " ms", {},
                     "see connect_timeout");
    }
    next = PQconnectPoll(connection);
  }
  established(connection);
  return {};
}

// A second descriptor of a connection's socket. libpq may close its own at any moment, so that another thread
// must not touch that one.
class SocketCopy {
 public:
  explicit SocketCopy(int socket) : fd_(::fcntl(socket, F_DUPFD_CLOEXEC, 0)) {}
  ~SocketCopy() {
    if (fd_ >= 0) ::close(fd_);
  }
  SocketCopy(const SocketCopy&) = delete;
  SocketCopy& operator=(const SocketCopy&) = delete;
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  void shut_down() const noexcept { static_cast<void>(::shutdown(fd_, SHUT_RDWR)); }

 private:
  int fd_;
};

bool succeeded(const PGresult* result) {
  const ExecStatusType status = PQresultStatus(result);
  return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY;
}

bool ends_transaction(std::string_view sql) {
  sql.remove_prefix(std::min(sql.find_first_not_of(" \t\r\n"), sql.size()));
  constexpr std::string_view words[] = {"commit", "end", "prepare transaction"};
  return std::any_of(std::begin(words), std::end(words), [&](std::string_view word) {
    return sql.size() >= word.size() &&
           std::equal(word.begin(), word.end(), sql.begin(), [](char a, char b) { return a == (b | 0x20); });
  });
}

// A plan belongs to a text and the types it was prepared with: with other types the same bytes would be
// misread.
std::string plan_key(std::string_view sql, const Params& params) {
  std::string key(sql);
  key.push_back('\0');
  key.append(reinterpret_cast<const char*>(params.types()),
             static_cast<std::size_t>(params.count()) * sizeof(Oid));
  return key;
}

std::string at_line(std::string_view sql, const PGresult* failed) {
  const char* position = PQresultErrorField(failed, PG_DIAG_STATEMENT_POSITION);
  if (!position) return {};
  const auto characters = static_cast<std::size_t>(std::atol(position));
  const auto before = sql.substr(0, std::min(characters, sql.size()));
  return " at line " + std::to_string(1 + std::count(before.begin(), before.end(), '\n'));
}

}  // namespace

struct Session::State {
  explicit State(ConnectionHandle made)
      : connection(std::move(made)), socket(PQsocket(connection.get())), canceller(connection.get()) {
    PQsetNoticeReceiver(raw(), on_notice, this);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  static void on_notice(void* self, const PGresult* notice) noexcept {
    auto& state = *static_cast<State*>(self);
    if (auto doubt = doubt_of(notice, state.committing ? Spoken::at_commit : Spoken::anywhere))
      state.doubt = std::move(doubt);
  }

  ConnectionHandle connection;
  SocketCopy socket;
  Canceller canceller;
  std::atomic<bool> abandoned = false;
  bool pooled = false;                          // nothing that outlives a transaction is ours
  bool committing = false;                      // by commit()
  std::optional<Error> doubt;                   // what a notice said of the statement under way
  Millis patience{0};                           // for an answer; 0: none
  std::map<std::string, std::string> prepared;  // plan_key() → name
  std::size_t names = 0;

  struct Sent {
    bool prepares = false;  // answers a PREPARE of the statement behind it
    std::string plan{};     // its key; empty: none
    std::string sql{};
  };
  std::vector<Sent> sent;
  bool sent_in_transaction = false;  // when the first of them was sent
  std::optional<Error> send_error;   // the first of them

  /// Whether a plan is kept under this key, or may be.
  [[nodiscard]] bool keeps_plan(const std::string& key) const {
    return !pooled && (prepared.size() < prepared_max || prepared.contains(key));
  }

  /// To libpq, with a PREPARE before it where there is no plan yet.
  [[nodiscard]] bool give(std::string_view sql, const Params& params) {
    const std::string key = plan_key(sql, params);
    const std::string text(sql);
    const bool known = prepared.contains(key);
    const bool keeps = keeps_plan(key);
    bool given = true;
    if (keeps && !known) {
      const auto& name = prepared.emplace(key, "outbox_" + std::to_string(++names)).first->second;
      given = PQsendPrepare(raw(), name.c_str(), text.c_str(), params.count(), params.types()) == 1;
      sent.push_back({.prepares = true, .plan = key, .sql = text});
    }
    if (keeps)
      given = given && PQsendQueryPrepared(raw(), prepared.at(key).c_str(), params.count(), params.values(),
                                           params.lengths(), params.formats(), 0) == 1;
    else
      given = PQsendQueryParams(raw(), text.c_str(), params.count(), params.types(), params.values(),
                                params.lengths(), params.formats(), 0) == 1;
    sent.push_back({.plan = keeps ? key : "", .sql = text});
    return given && (sent.size() % flush_every != 0 || PQflush(raw()) == 0);
  }

  [[nodiscard]] PGconn* raw() const { return connection.get(); }
  [[nodiscard]] bool lost_connection() const { return abandoned || PQstatus(raw()) != CONNECTION_OK; }
  [[nodiscard]] bool open_transaction() const {
    const auto status = PQtransactionStatus(raw());
    return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
  }

  void abandon() noexcept {
    abandoned = true;
    socket.shut_down();
  }

  // What PQexec() and its like answer, but within the patience.
  ResultHandle last_answer(bool given) {
    const MonoTime deadline = std::chrono::steady_clock::now() + patience;
    ResultHandle last;
    while (given) {
      while (PQisBusy(raw()) == 1) {
        if (wait_for(PQsocket(raw()), POLLIN, deadline) == Wait::late) {
          abandon();
          return nullptr;
        }
        if (PQconsumeInput(raw()) == 0) return nullptr;
      }
      PGresult* next = PQgetResult(raw());
      if (!next) return last;
      last.reset(next);
    }
    return last;
  }

  ResultHandle exec(const char* sql, const Params& p, int format) {
    if (patience > Millis{0})
      return last_answer(PQsendQueryParams(raw(), sql, p.count(), p.types(), p.values(), p.lengths(),
                                           p.formats(), format) == 1);
    return ResultHandle{
        PQexecParams(raw(), sql, p.count(), p.types(), p.values(), p.lengths(), p.formats(), format)};
  }
  ResultHandle prepare(const char* name, const char* sql, const Params& p) {
    if (patience > Millis{0}) return last_answer(PQsendPrepare(raw(), name, sql, p.count(), p.types()) == 1);
    return ResultHandle{PQprepare(raw(), name, sql, p.count(), p.types())};
  }
  ResultHandle exec_prepared(const char* name, const Params& p, int format) {
    if (patience > Millis{0})
      return last_answer(
          PQsendQueryPrepared(raw(), name, p.count(), p.values(), p.lengths(), p.formats(), format) == 1);
    return ResultHandle{PQexecPrepared(raw(), name, p.count(), p.values(), p.lengths(), p.formats(), format)};
  }

  // What a lost reply means: inside a transaction that was not yet committed nothing can have taken effect.
  Error lost(bool was_open, std::string_view sql, const PGresult* result) const {
    Error error = result ? error_of(result) : Error{};
    if (abandoned)
      error.message = "PostgreSQL did not answer in time, and the connection was given up";
    else if (error.code.empty())
      error.message = "the connection to PostgreSQL was lost: " + one_line(PQerrorMessage(raw()));
    const bool certain = was_open && !ends_transaction(sql);
    error.disposition = certain ? Disposition::reconnect : Disposition::in_doubt;
    return error;
  }

  Result<Rows> answer(ResultHandle result, bool was_open, std::string_view sql) {
    const auto doubtful = std::exchange(doubt, std::nullopt);
    if (succeeded(result.get()) && doubtful) return failure(*doubtful);
    if (succeeded(result.get())) return Rows{result.release()};
    if (!result || lost_connection()) return failure(lost(was_open, sql, result.get()));
    return failure(error_of(result.get()));
  }

  Result<std::string> name_of(const std::string& key, const Params& params) {
    if (const auto found = prepared.find(key); found != prepared.end()) return found->second;
    const std::string name = "outbox_" + std::to_string(++names);
    const bool was_open = open_transaction();
    auto done = answer(prepare(name.c_str(), key.c_str(), params), was_open, key);
    if (!done) {
      // A plan that could not be made had no effect, whatever became of the connection.
      if (done.error().disposition == Disposition::in_doubt)
        done.error().disposition = Disposition::reconnect;
      return failure(std::move(done.error()));
    }
    prepared.emplace(key, name);
    return name;
  }
};

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::connect(const ConnectOptions& options) {
  const auto keywords = connection_keywords(options);
  if (!keywords) return failure(keywords.error());
  auto attempt = begin_connection(*keywords, options);
  if (!attempt) return failure(std::move(attempt.error()));
  PGconn* connection = attempt->connection.get();
  if (const Status done = finish_connecting(connection, attempt->limit); !done) return failure(done.error());
  auto state = std::make_unique<State>(std::move(attempt->connection));
  if (!state->socket.valid())
    return failure(Disposition::retry, "no file descriptor for a connection to PostgreSQL", {},
                   "raise the limit of open files");
  state->patience = attempt->limit;
  Session session{std::move(state)};
  if (!has_iso_dates(connection)) {
    if (auto set = session.exec(set_iso_dates); !set) return failure(std::move(set.error()));
  }
  // A pooler makes up the key by which a client cancels; a server gives its process's number.
  const auto answering = session.exec("SELECT pg_backend_pid()");
  if (!answering) return failure(answering.error());
  session.state_->pooled = answering->integer(0, 0) != session.backend_pid();
  session.answer_within(Millis{0});
  return session;
}

Result<Rows> Session::exec(std::string_view sql, const Params& params, Format results) {
  const bool was_open = state_->open_transaction();
  const std::string text(sql);
  ResultHandle result = state_->exec(text.c_str(), params, results == Format::binary ? 1 : 0);
  return state_->answer(std::move(result), was_open, sql);
}

Result<Rows> Session::exec_prepared(std::string_view sql, const Params& params, Format results) {
  const std::string key = plan_key(sql, params);
  for (int attempt = 1;; ++attempt) {
    if (!state_->keeps_plan(key)) return exec(sql, params, results);
    const auto name = state_->name_of(key, params);
    if (!name) return failure(name.error());
    const bool was_open = state_->open_transaction();
    ResultHandle result = state_->exec_prepared(name->c_str(), params, results == Format::binary ? 1 : 0);
    const bool gone = plan_is_gone(result.get());
    if (gone) state_->prepared.erase(key);
    if (gone && !was_open && attempt == 1) continue;
    auto rows = state_->answer(std::move(result), was_open, sql);
    if (!rows && gone)
      rows.error().disposition = Disposition::retry;  // the whole transaction, with a new plan
    return rows;
  }
}

Status Session::send(std::string_view sql, const Params& params) {
  State& s = *state_;
  if (s.sent.empty()) {
    s.sent_in_transaction = s.open_transaction();
    const bool entered = PQenterPipelineMode(s.raw()) == 1;
    if (!entered && PQstatus(s.raw()) == CONNECTION_OK)
      s.send_error =
          Error{Disposition::quarantine, "", "the connection was left busy, so that nothing can be sent", ""};
    else if (!entered)
      s.send_error = s.lost(s.sent_in_transaction, sql, nullptr);
  }
  if (!s.send_error && !s.give(sql, params)) s.send_error = s.lost(s.sent_in_transaction, sql, nullptr);
  if (s.send_error) s.sent.push_back({});  // receive() is to say so, whatever becomes of this answer
  return s.send_error ? failure(*s.send_error) : Status{};
}

Session::Received Session::receive() {
  State& s = *state_;
  Received out;
  const auto sent = std::exchange(s.sent, {});
  if (auto error = std::exchange(s.send_error, std::nullopt)) {
    out.error = std::move(error);
    return out;  // what was sent before is unknown, and the pipeline stays open: nobody uses this session
                 // again
  }
  if (sent.empty()) return out;
  bool whole = PQpipelineSync(s.raw()) == 1;
  for (const auto& one : sent) {
    ResultHandle result{whole ? PQgetResult(s.raw()) : nullptr};
    if (result) whole = PQgetResult(s.raw()) == nullptr;  // the end of this statement's answer
    const bool gone = plan_is_gone(result.get());
    if (gone || (one.prepares && !succeeded(result.get()))) s.prepared.erase(one.plan);
    if (out.error) continue;
    auto rows = s.answer(std::move(result), s.sent_in_transaction, one.sql);
    if (!rows) {
      out.error = rows.error();
      if (gone) out.error->disposition = Disposition::retry;  // the whole transaction, with a new plan
    } else if (!one.prepares) {
      out.rows.push_back(*std::move(rows));
    }
  }
  if (whole) ResultHandle{PQgetResult(s.raw())};  // of the sync
  static_cast<void>(PQexitPipelineMode(s.raw()));
  return out;
}

std::size_t Session::sent() const {
  return state_->sent.size();
}

Status Session::exec_script(std::string_view sql) {
  const bool was_open = state_->open_transaction();
  const std::string text(sql);
  ResultHandle result{PQexec(state_->raw(), text.c_str())};
  const std::string line = succeeded(result.get()) ? "" : at_line(sql, result.get());
  auto rows = state_->answer(std::move(result), was_open, "commit");
  if (rows) return {};
  rows.error().message += line;
  return failure(std::move(rows.error()));
}

Status Session::commit(std::string_view before) {
  const std::string script = before.empty() ? "COMMIT" : std::string(before) + ";\nCOMMIT";
  state_->committing = true;
  auto done = state_->answer(ResultHandle{PQexec(state_->raw(), script.c_str())}, true, "commit");
  state_->committing = false;
  constexpr const char* in_failed_transaction = "25P02";
  // The server answers COMMIT with ROLLBACK, and no error, where a statement had failed and nobody said so.
  const bool rolled_back =
      done ? std::string_view(PQcmdStatus(const_cast<PGresult*>(done->native()))) != "COMMIT"
           : done.error().code == in_failed_transaction;
  if (rolled_back)
    return failure(Disposition::fatal,
                   "the transaction was rolled back: a statement in it failed and was not reported");
  return done ? Status{} : failure(std::move(done.error()));
}

bool Session::broken() const {
  return state_->lost_connection();
}
bool Session::in_transaction() const {
  return state_->open_transaction();
}
int Session::backend_pid() const {
  return PQbackendPID(native());
}

bool Session::pooled() const {
  return state_->pooled;
}

int Session::server_version() const {
  return PQserverVersion(state_->raw());
}
pg_conn* Session::native() const {
  return state_->raw();
}

void Session::answer_within(Millis patience) {
  state_->patience = patience;
}

void Session::cancel() noexcept {
  state_->canceller.request();
}

void Session::abandon() noexcept {
  state_->abandon();
}

std::string libpq_version() {
  const int number = PQlibVersion();
  return std::to_string(number / 10000) + "." + std::to_string(number % 10000);
}

}  // namespace outbox::pg
