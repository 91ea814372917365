#include "pg/rows.hpp"

#include <libpq-fe.h>

#include <charconv>
#include <utility>

#include "base/check.hpp"
#include "pg/oids.hpp"
#include "pg/timestamp.hpp"

namespace outbox::pg {
namespace {

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Big-endian, sign-extended from the value's own width.
std::int64_t read_signed(std::string_view bytes) {
  std::uint64_t bits = 0;
  for (const char c : bytes) bits = bits << 8 | static_cast<unsigned char>(c);
  const unsigned unused = 64 - 8 * static_cast<unsigned>(bytes.size());
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

std::uint32_t read_unsigned(std::string_view bytes) {
  std::uint32_t bits = 0;
  for (const char c : bytes) bits = bits << 8 | static_cast<unsigned char>(c);
  return bits;
}

std::size_t integer_width(Oid type) {
  switch (type) {
    case oid::int2:
      return 2;
    case oid::int4:
    case oid::oid:
      return 4;
    case oid::int8:
    case oid::xid8:
      return 8;
    default:
      return 0;
  }
}

std::optional<Tid> parse_tid(std::string_view text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos || text.front() != '(' || text.back() != ')') return std::nullopt;
  const auto block = parse_integer(text.substr(1, comma - 1));
  const auto line = parse_integer(text.substr(comma + 1, text.size() - comma - 2));
  if (!block || !line) return std::nullopt;
  return Tid{static_cast<std::uint32_t>(*block), static_cast<std::uint16_t>(*line)};
}

}  // namespace

Rows::Rows(pg_result* owned) : result_(owned, PQclear), size_(PQntuples(owned)) {
  std::vector<Column> columns(static_cast<std::size_t>(PQnfields(owned)));
  for (int i = 0; auto& column : columns) {
    column = {PQftype(owned, i), PQfformat(owned, i) == 1};
    ++i;
  }
  columns_ = std::make_shared<const std::vector<Column>>(std::move(columns));
}

int Rows::columns() const {
  return columns_ ? static_cast<int>(columns_->size()) : 0;
}

const Rows::Column& Rows::column_of(int column) const {
  return (*columns_)[static_cast<std::size_t>(column)];
}

std::int64_t Rows::affected() const {
  return result_ ? parse_integer(PQcmdTuples(result_.get())).value_or(0) : 0;
}

bool Rows::is_null(int row, int column) const {
  OUTBOX_CHECK(row >= 0 && row < size_ && column >= 0 && column < columns(),
               "a value is read inside its result");
  return PQgetisnull(result_.get(), row, column) != 0;
}

// libpq gives a NULL the length 0, so only an empty value costs the second question.
std::string_view Rows::text(int row, int column) const {
  OUTBOX_CHECK(row >= 0 && row < size_ && column >= 0 && column < columns(),
               "a value is read inside its result");
  const int length = PQgetlength(result_.get(), row, column);
  OUTBOX_CHECK(length > 0 || PQgetisnull(result_.get(), row, column) == 0, "a NULL is never read as a value");
  return {PQgetvalue(result_.get(), row, column), static_cast<std::size_t>(length)};
}

std::optional<std::string_view> Rows::text_or_null(int row, int column) const {
  if (is_null(row, column)) return std::nullopt;
  return text(row, column);
}

bool Rows::boolean(int row, int column) const {
  const std::string_view bytes = text(row, column);
  OUTBOX_CHECK(column_of(column).type == oid::boolean && bytes.size() == 1, "the column is boolean");
  return column_of(column).binary ? bytes[0] != 0 : bytes[0] == 't';
}

std::int64_t Rows::integer(int row, int column) const {
  const std::string_view bytes = text(row, column);
  const Oid type = column_of(column).type;
  const std::size_t width = integer_width(type);
  OUTBOX_CHECK(width > 0, "the column is an integer");
  if (column_of(column).binary) {
    OUTBOX_CHECK(bytes.size() == width, "the column is an integer");
    return type == oid::oid ? read_unsigned(bytes) : read_signed(bytes);
  }
  const auto value = parse_integer(bytes);
  OUTBOX_CHECK(value.has_value(), "the column is an integer");
  return *value;
}

Uuid Rows::uuid(int row, int column) const {
  const std::string_view bytes = text(row, column);
  OUTBOX_CHECK(column_of(column).type == oid::uuid, "the column is a uuid");
  if (!column_of(column).binary) {
    const auto id = parse_uuid(bytes);
    OUTBOX_CHECK(id.has_value(), "the column is a uuid");
    return *id;
  }
  Uuid id;
  OUTBOX_CHECK(bytes.size() == id.bytes.size(), "the column is a uuid");
  for (std::size_t i = 0; i < bytes.size(); ++i) id.bytes[i] = static_cast<std::uint8_t>(bytes[i]);
  return id;
}

WallTime Rows::timestamptz(int row, int column) const {
  const std::string_view bytes = text(row, column);
  OUTBOX_CHECK(column_of(column).type == oid::timestamptz, "the column is a timestamptz");
  if (column_of(column).binary) {
    OUTBOX_CHECK(bytes.size() == 8, "the column is a timestamptz");
    return timestamp_from_wire(read_signed(bytes));
  }
  const auto value = parse_timestamp(bytes);
  OUTBOX_CHECK(value.has_value(), "the session's DateStyle is ISO and the year is AD");
  return *value;
}

Tid Rows::tid(int row, int column) const {
  const std::string_view bytes = text(row, column);
  OUTBOX_CHECK(column_of(column).type == oid::tid && bytes.size() >= 5, "the column is a tid");
  if (column_of(column).binary) {
    OUTBOX_CHECK(bytes.size() == 6, "the column is a tid");
    return {read_unsigned(bytes.substr(0, 4)), static_cast<std::uint16_t>(read_unsigned(bytes.substr(4)))};
  }
  const auto value = parse_tid(bytes);
  OUTBOX_CHECK(value.has_value(), "the column is a tid");
  return *value;
}

}  // namespace outbox::pg
