#pragma once
// The rows of one cursor, looked at one by one: a thousand are in memory at most. Thread: one, as its
// session.

#include <functional>
#include <utility>

#include "base/result.hpp"
#include "pg/rows.hpp"
#include "pg/session.hpp"

namespace outbox::commands {

/// `read` makes a T of one row of the batch.
template <class T>
class Cursor {
 public:
  using Read = T (*)(const pg::Rows& rows, int row);
  using Fetch = std::function<Result<pg::Rows>()>;

  Cursor(Fetch fetch, Read read) : fetch_(std::move(fetch)), read_(read) {}

  /// The row that is next; nullptr: there is none. It holds until pop().
  [[nodiscard]] Result<const T*> peek() {
    if (there_) return &row_;
    if (at_ == rows_.size() && !done_) {
      auto rows = fetch_();
      if (!rows) return failure(std::move(rows.error()));
      rows_ = std::move(*rows);
      at_ = 0;
      done_ = rows_.empty();
    }
    if (at_ == rows_.size()) return nullptr;
    row_ = read_(rows_, at_++);
    there_ = true;
    return &row_;
  }
  void pop() { there_ = false; }

 private:
  Fetch fetch_;
  Read read_;
  pg::Rows rows_{};
  T row_{};
  int at_ = 0;
  bool there_ = false;
  bool done_ = false;
};

}  // namespace outbox::commands
