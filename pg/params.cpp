#include "pg/params.hpp"

#include <bit>
#include <concepts>
#include <limits>

#include "base/check.hpp"
#include "pg/oids.hpp"
#include "pg/timestamp.hpp"

namespace outbox::pg {
namespace {

constexpr int text_format = 0;
constexpr int binary_format = 1;
constexpr std::size_t value_bytes_max = 0x3fff'ffff;  // PostgreSQL's own limit of one value, 1 GB

template <std::integral T>
void put(std::string& out, T value) {
  using Bits = std::make_unsigned_t<T>;
  auto bits = static_cast<Bits>(value);
  char bytes[sizeof(T)];
  for (std::size_t i = sizeof(T); i-- > 0;) {
    bytes[i] = static_cast<char>(static_cast<unsigned char>(bits & 0xff));
    if constexpr (sizeof(T) > 1) bits = static_cast<Bits>(bits >> 8);
  }
  out.append(bytes, sizeof(T));
}

void put(std::string& out, const Uuid& id) {
  out.append(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
}
void put(std::string& out, WallTime t) {
  put(out, timestamp_to_wire(t));
}
void put(std::string& out, const Tid& tid) {
  put(out, tid.block);
  put(out, tid.offset);
}
void put(std::string& out, std::string_view v) {
  out.append(v);
}
void put(std::string& out, std::span<const std::byte> v) {
  out.append(reinterpret_cast<const char*>(v.data()), v.size());
}

// The array header of PostgreSQL's array_recv: dimensions, "has nulls", element type, then length and lower
// bound of the one dimension. An empty array has no dimension at all.
void put_array_header(std::string& out, Oid element, std::size_t count, bool has_null) {
  OUTBOX_CHECK(count <= std::size_t{std::numeric_limits<std::int32_t>::max()},
               "an array's length fits in 32 bits");
  put(out, std::int32_t{count == 0 ? 0 : 1});
  put(out, std::int32_t{has_null ? 1 : 0});
  put(out, element);
  if (count == 0) return;
  put(out, static_cast<std::int32_t>(count));
  put(out, std::int32_t{1});
}

template <class T>
void put_element(std::string& out, const T& value) {
  const std::size_t length_at = out.size();
  put(out, std::int32_t{0});
  put(out, value);
  const auto length = static_cast<std::uint32_t>(out.size() - length_at - 4);
  for (std::size_t i = 0; i < 4; ++i) out[length_at + i] = static_cast<char>(length >> (24 - 8 * i));
}
template <class T>
void put_element(std::string& out, const std::optional<T>& value) {
  if (value) {
    put_element(out, *value);
  } else {
    put(out, std::int32_t{-1});
  }
}

template <class T>
bool is_null(const T&) {
  return false;
}
template <class T>
bool is_null(const std::optional<T>& v) {
  return !v;
}

template <class T>
void put_array(std::string& out, Oid element, std::span<const T> values) {
  bool has_null = false;
  for (const T& v : values) has_null = has_null || is_null(v);
  if constexpr (std::integral<T>) out.reserve(out.size() + 24 + values.size() * (4 + sizeof(T)));
  put_array_header(out, element, values.size(), has_null);
  for (const T& v : values) put_element(out, v);
}

}  // namespace

void Params::begin(Oid type, int format) {
  starts_.push_back(buffer_.size());
  types_.push_back(type);
  formats_.push_back(format);
}

void Params::end() {
  const std::size_t length = buffer_.size() - starts_.back();
  OUTBOX_CHECK(length <= value_bytes_max, "one parameter is at most 1 GB");
  lengths_.push_back(static_cast<int>(length));
  buffer_.push_back('\0');
}

template <class T>
Params& Params::binary(Oid type, const T& v) {
  begin(type, binary_format);
  put(buffer_, v);
  end();
  return *this;
}

template <class T>
Params& Params::array(Oid type, Oid element, std::span<const T> v) {
  begin(type, binary_format);
  put_array(buffer_, element, v);
  end();
  return *this;
}

Params& Params::null() {
  begin(oid::unknown, text_format);
  end();
  starts_.back() = null_at;
  return *this;
}

Params& Params::untyped(std::optional<std::string_view> v) {
  if (!v) return null();
  // libpq measures a value in text form by strlen, and would cut it at a NUL in silence. As a binary text the
  // server sees the NUL and refuses it (22021).
  const bool has_nul = v->find('\0') != std::string_view::npos;
  begin(has_nul ? oid::text : oid::unknown, has_nul ? binary_format : text_format);
  put(buffer_, *v);
  end();
  return *this;
}

Params& Params::text(std::optional<std::string_view> v) {
  if (v) return binary(oid::text, *v);
  null();
  types_.back() = oid::text;
  return *this;
}

Params& Params::i16(std::int16_t v) {
  return binary(oid::int2, v);
}
Params& Params::i32(std::int32_t v) {
  return binary(oid::int4, v);
}
Params& Params::i64(std::int64_t v) {
  return binary(oid::int8, v);
}
Params& Params::boolean(bool v) {
  return binary(oid::boolean, std::uint8_t{v});
}
Params& Params::bytes(std::span<const std::byte> v) {
  return binary(oid::bytea, v);
}
Params& Params::uuid(const Uuid& v) {
  return binary(oid::uuid, v);
}
Params& Params::timestamptz(WallTime v) {
  return binary(oid::timestamptz, v);
}

Params& Params::i16s(std::span<const std::int16_t> v) {
  return array(oid::int2_array, oid::int2, v);
}
Params& Params::i32s(std::span<const std::int32_t> v) {
  return array(oid::int4_array, oid::int4, v);
}
Params& Params::i64s(std::span<const std::int64_t> v) {
  return array(oid::int8_array, oid::int8, v);
}
Params& Params::oids(std::span<const Oid> v) {
  return array(oid::oid_array, oid::oid, v);
}
Params& Params::tids(std::span<const Tid> v) {
  return array(oid::tid_array, oid::tid, v);
}
Params& Params::uuids(std::span<const Uuid> v) {
  return array(oid::uuid_array, oid::uuid, v);
}
Params& Params::timestamptzs(std::span<const WallTime> v) {
  return array(oid::timestamptz_array, oid::timestamptz, v);
}
Params& Params::texts(std::span<const std::string_view> v) {
  return array(oid::text_array, oid::text, v);
}
Params& Params::texts(std::span<const std::optional<std::string_view>> v) {
  return array(oid::text_array, oid::text, v);
}
Params& Params::bytes_array(std::span<const std::optional<std::span<const std::byte>>> v) {
  return array(oid::bytea_array, oid::bytea, v);
}

const char* const* Params::values() const {
  pointers_.resize(starts_.size());
  for (std::size_t i = 0; i < starts_.size(); ++i) {
    pointers_[i] = starts_[i] == null_at ? nullptr : buffer_.data() + starts_[i];
  }
  return pointers_.data();
}

void Params::clear() {
  buffer_.clear();
  starts_.clear();
  types_.clear();
  lengths_.clear();
  formats_.clear();
}

}  // namespace outbox::pg
