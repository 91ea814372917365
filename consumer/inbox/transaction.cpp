#include "outbox/transaction.hpp"

#include <libpq-fe.h>

#include <array>

#include "base/clock.hpp"
#include "pg/rows.hpp"

namespace outbox {

Param::Param(double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  text_.emplace(digits.data(), end);
}

Param::Param(std::string_view value) : text_(value) {
  if (value.find('\0') != std::string_view::npos)
    throw std::invalid_argument("outbox::Param: PostgreSQL's text can't hold a NUL; pass the value as bytes");
}

Param::Param(std::span<const std::byte> value)
    : text_(std::string(reinterpret_cast<const char*>(value.data()), value.size())), bytes_(true) {}

Param::Param(std::chrono::sys_time<std::chrono::microseconds> value) : text_(rfc3339(value)) {}

Rows::Rows(std::shared_ptr<const void> result, int size, std::int64_t affected)
    : result_(std::move(result)), size_(size), affected_(affected) {}

std::optional<std::string_view> Rows::text(int row, int column) const {
  const auto* rows = static_cast<const pg::Rows*>(result_.get());
  if (!rows || row < 0 || row >= size_ || column < 0 || column >= PQnfields(rows->native()))
    throw std::out_of_range("outbox::Rows: no row " + std::to_string(row) + ", column " +
                            std::to_string(column));
  return rows->text_or_null(row, column);
}

}  // namespace outbox
