#pragma once
// The parameters of one statement, in PostgreSQL's binary form where that form is fixed and documented
// (integers, bool, uuid, timestamptz, bytea, arrays of these) and as text otherwise. Text is never spliced
// into SQL: this is the only way for a value to reach a statement. Lifecycle: built, handed to Session::exec
// or Connection::run, which read it before they return. Not thread-safe.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/uuid.hpp"

namespace outbox::pg {

using Oid = std::uint32_t;

/// Where a row version lies: block and line pointer, PostgreSQL's tid.
struct Tid {
  std::uint32_t block = 0;
  std::uint16_t offset = 0;
};

class Params {
 public:
  Params& i16(std::int16_t v);
  Params& i32(std::int32_t v);
  Params& i64(std::int64_t v);
  Params& boolean(bool v);
  Params& text(std::optional<std::string_view> v);
  /// A value in text form whose type the server infers or the SQL casts (json, jsonb, numeric, interval,
  /// xid8, ...).
  Params& untyped(std::optional<std::string_view> v);
  Params& bytes(std::span<const std::byte> v);
  Params& uuid(const Uuid& v);
  Params& timestamptz(WallTime v);  ///< WallTime::max() and min() are infinity and -infinity
  /// NULL of unknown type: cast it in the SQL.
  Params& null();

  Params& i16s(std::span<const std::int16_t> v);
  Params& i32s(std::span<const std::int32_t> v);
  Params& i64s(std::span<const std::int64_t> v);
  Params& oids(std::span<const Oid> v);
  Params& tids(std::span<const Tid> v);
  Params& uuids(std::span<const Uuid> v);
  Params& timestamptzs(std::span<const WallTime> v);
  Params& texts(std::span<const std::string_view> v);
  Params& texts(std::span<const std::optional<std::string_view>> v);
  Params& bytes_array(std::span<const std::optional<std::span<const std::byte>>> v);

  // Shape: what libpq's PQsendQueryParams takes; pointers stay valid until the next change of this object.
  [[nodiscard]] int count() const { return static_cast<int>(types_.size()); }
  [[nodiscard]] const Oid* types() const { return types_.data(); }
  [[nodiscard]] const char* const* values() const;
  [[nodiscard]] const int* lengths() const { return lengths_.data(); }
  [[nodiscard]] const int* formats() const { return formats_.data(); }
  void clear();

 private:
  static constexpr std::size_t null_at = static_cast<std::size_t>(-1);
  void begin(Oid type, int format);  // the value's bytes follow in buffer_
  void end();
  template <class T>
  Params& binary(Oid type, const T& v);
  template <class T>
  Params& array(Oid type, Oid element, std::span<const T> v);

  std::string buffer_;               // all values, one behind the other, each NUL-terminated
  std::vector<std::size_t> starts_;  // where each begins in buffer_, or null_at
  std::vector<Oid> types_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
  mutable std::vector<const char*> pointers_;
};

}  // namespace outbox::pg
