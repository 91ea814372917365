#pragma once
// The rows of one result: a shared, read-only holder of a PGresult. Views taken from it live as long as any
// copy of the Rows, or what memory() returned, lives. Columns are read by position; binary and text results
// read the same. A value of another type, a NULL read as a value, or an index out of range breaks an
// invariant and aborts.

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/uuid.hpp"
#include "pg/params.hpp"

struct pg_result;

namespace outbox::pg {

class Rows {
 public:
  Rows() = default;
  explicit Rows(pg_result* owned);

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] int columns() const;
  /// Rows affected by an INSERT, UPDATE, DELETE, or returned by a SELECT.
  [[nodiscard]] std::int64_t affected() const;

  [[nodiscard]] bool is_null(int row, int column) const;
  [[nodiscard]] std::string_view text(int row, int column) const;  ///< the bytes as they came
  [[nodiscard]] std::optional<std::string_view> text_or_null(int row, int column) const;
  [[nodiscard]] bool boolean(int row, int column) const;
  [[nodiscard]] std::int64_t integer(int row, int column) const;  ///< int2, int4, int8, oid or xid8
  [[nodiscard]] Uuid uuid(int row, int column) const;
  [[nodiscard]] WallTime timestamptz(int row, int column) const;  ///< infinities: WallTime::max() and min()
  [[nodiscard]] Tid tid(int row, int column) const;

  /// Keeps the memory behind every view of this result alive.
  [[nodiscard]] std::shared_ptr<const void> memory() const { return result_; }
  [[nodiscard]] const pg_result* native() const { return result_.get(); }

 private:
  struct Column {
    std::uint32_t type = 0;
    bool binary = false;
  };
  [[nodiscard]] const Column& column_of(int column) const;

  std::shared_ptr<pg_result> result_;
  std::shared_ptr<const std::vector<Column>> columns_;  // asked of libpq once, not for each value
  int size_ = 0;
};

}  // namespace outbox::pg
