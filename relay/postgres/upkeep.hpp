#pragma once
// Keeps the outbox table in shape: makes the days ahead, drops those that are settled and older than the
// replay window, and empties the DEFAULT partition, or a table without partitions, in small batches. Works in
// rounds on a connection of its own, open for a round only, so that nothing the relay sends waits behind it.
//
// Whoever has lane 0 does it: one instance at a time without a session lock, which a pooler would lose. Two
// at once, for the moment of a take-over, do no harm: a drop is one transaction that locks before it looks,
// and a row is deleted once. A lock that holds up inserts is asked for briefly; where it is refused the round
// is repeated soon, after a growing pause. Lifecycle: constructed → owned_until() after each lease → stop().
// Thread: the loop's.

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/backoff.hpp"
#include "pg/connection.hpp"
#include "relay/postgres/postgres_source.hpp"
#include "relay/postgres/source_sql.hpp"

namespace outbox::relay {

class Upkeep : public std::enable_shared_from_this<Upkeep> {
 public:
  Upkeep(boost::asio::io_context& loop, const PostgresSourceOptions& options);

  /// Lane 0 is ours until then: a round begins if one is due, and one under way goes on until then.
  void owned_until(MonoTime until);
  void stop();
  /// From the next round on.
  void set_uri(const std::string& uri) { options_.connect.uri = uri; }
  [[nodiscard]] const UpkeepFigures& figures() const { return figures_; }

 private:
  enum class Kind { day, rows_of_default, rows_of_table };
  struct Piece {
    Kind kind = Kind::day;
    std::uint32_t oid = 0;
    std::string name;
    std::int64_t blocks = 0;
    std::int64_t deleted = 0;
    std::int64_t left = 0;
  };
  using Next = std::function<void(const pg::Rows&)>;

  void begin();
  void make_partitions();  // one a transaction
  void made_partitions();
  void look();
  void looked(const pg::Rows& rows);
  void next();
  void drop();
  void erase(std::int64_t from);
  void erased();
  void finish();
  void ask(const Sql& sql, pg::Params params, const Next& then, const std::function<void()>& otherwise);
  void failed(const Error& error);
  void note(UpkeepNote::Event event, std::int64_t rows = 0, const std::string& why = {});

  boost::asio::io_context& loop_;
  PostgresSourceOptions options_;
  Sql settings_, partitions_, look_, drop_, erase_;
  std::unique_ptr<pg::Connection> connection_;  // while a round is under way
  boost::asio::steady_timer pause_;
  std::uint64_t round_ = 0;  // late answers belong to another one
  MonoTime owned_until_{};
  MonoTime next_round_{};
  Backoff again_{{Millis{1000}, Millis{60'000}}, 7};
  std::deque<Piece> pieces_;
  Piece piece_;
  std::set<std::string> kept_;  // days already told of; no more than there are
  std::int64_t made_ = 0;       // partitions, in this round
  std::int64_t in_default_ = 0;
  UpkeepFigures figures_;
  bool wrong_ = false;
  bool stopped_ = false;
};

}  // namespace outbox::relay
