#pragma once
// Segments on one established connection, in libpq's pipeline mode: what was given to libpq, what came back,
// and what becomes of each when the connection breaks. No event loop in here: the owner calls flush() when
// the socket can be written and read() when it can be read. Private to pg/.

#include <deque>
#include <optional>
#include <string>

#include "pg/connection.hpp"
#include "pg/libpq.hpp"
#include "pg/plans.hpp"

namespace outbox::pg {

struct Answer {
  Connection::Done done;
  Result<std::vector<Rows>> result;
};
using Answers = std::deque<Answer>;

enum class Flushed { all, partly, broken };
enum class Overdue { none, cancel, drop };

class Pipeline {
 public:
  Pipeline(ConnectionHandle connection, Naming naming);

  /// How the statements of later segments are named.
  void use(Naming naming) { naming_ = naming; }
  /// Queues a segment; flush() sends it.
  void push(Segment segment, Connection::Done done, MonoTime deadline);
  /// partly: call again when the socket can be written.
  [[nodiscard]] Flushed flush();
  /// Takes what the socket has; segments that are complete go to `answers`. false: the connection is broken.
  [[nodiscard]] bool read(Answers& answers);
  /// The next NOTIFY's channel.
  [[nodiscard]] std::optional<std::string> notification();
  /// The connection is given up: every segment is answered. One whose statement the server refused has that
  /// error; one that was not sent up to its SYNC: reconnect; any other: in_doubt.
  void abandon(const std::string& reason, Answers& answers);

  /// Segments without an answer.
  [[nodiscard]] std::size_t pending() const { return queued_.size() + awaited_.size(); }
  /// What to do at `now` about segments past their deadline; says cancel once for each.
  [[nodiscard]] Overdue overdue(MonoTime now);
  /// When to ask overdue() again; nullopt: nothing is pending.
  [[nodiscard]] std::optional<MonoTime> next_deadline() const;

  [[nodiscard]] PGconn* raw() const { return connection_.get(); }
  /// Why it broke: the server's last words where it had some, else libpq's.
  [[nodiscard]] Error loss() const;

 private:
  enum class Expects { plan, rows };
  struct Step {
    Expects expects;
    PlanId plan;
  };
  struct Entry {
    Segment segment;
    Connection::Done done;
    MonoTime deadline;
    bool sent = false;  // up to its SYNC, as far as the kernel
    bool cancelled = false;
    std::vector<Step> steps{};
    std::size_t step = 0;  // of the next result; at the end: the SYNC
    std::vector<Rows> rows{};
    std::optional<Error> error{};
    std::optional<Error> doubt{};  // a notice said that its commit may not be where it was to be
    bool certain = false;          // the error is the server's, so nothing of the segment took effect
  };

  [[nodiscard]] bool give(Entry& entry);
  [[nodiscard]] bool give(Entry& entry, const Statement& statement);
  void take_results(Answers& answers);
  void take(ResultHandle result, Answers& answers);
  void finish(Answers& answers);
  void take_error(Entry& entry, const PGresult* result);
  static void on_notice(void* self, const PGresult* notice) noexcept;

  ConnectionHandle connection_;
  Naming naming_;
  Plans plans_;
  std::uint64_t segments_ = 0;  // given so far
  std::deque<Entry> queued_;    // not yet given to libpq
  std::deque<Entry> awaited_;   // given, in order
  std::optional<Error> last_words_;
  bool broken_ = false;
};

}  // namespace outbox::pg
