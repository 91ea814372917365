#include "relay/log/line.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "relay/log/utf8.hpp"

namespace outbox::log {
namespace {

template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;

template <class Number>
void append_number(std::string& out, Number n) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, n);
  out.append(digits, end.ptr);
}

// Three digits behind the point are enough for a rate or an age, and JSON knows no infinity.
void append_real(std::string& out, double v) {
  if (!std::isfinite(v)) {
    out += "null";
    return;
  }
  char digits[64];
  const int n = std::snprintf(digits, sizeof digits, "%.6g", v);
  out.append(digits, static_cast<std::size_t>(n));
}

void append_duration(std::string& out, std::chrono::microseconds v) {
  const bool whole_millis = v.count() % 1000 == 0;
  append_number(out, whole_millis ? v.count() / 1000 : v.count());
  out += whole_millis ? "ms" : "us";
}

void append_hex(std::string& out, const char* form, unsigned value) {
  char digits[16];
  const int n = std::snprintf(digits, sizeof digits, form, value);
  out.append(digits, static_cast<std::size_t>(n));
}

// The escapes that text and JSON share; false: the character goes out as it is.
bool append_short_escape(std::string& out, char32_t c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return true;
    case '\\':
      out += "\\\\";
      return true;
    case '\n':
      out += "\\n";
      return true;
    case '\r':
      out += "\\r";
      return true;
    case '\t':
      out += "\\t";
      return true;
    default:
      return false;
  }
}

void append_quoted_text(std::string& out, std::string_view text) {
  out += '"';
  for (Utf8 at{text}; const auto c = at.next();) {
    if (append_short_escape(out, c->point)) continue;
    if (!c->valid) {
      append_hex(out, "\\x%02x", static_cast<unsigned char>(c->bytes[0]));
    } else if (unprintable(c->point)) {
      append_hex(out, "\\u{%x}", static_cast<unsigned>(c->point));
    } else {
      out += c->bytes;
    }
  }
  out += '"';
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (Utf8 at{text}; const auto c = at.next();) {
    if (append_short_escape(out, c->point)) continue;
    if (!c->valid) {
      out += "\xef\xbf\xbd";
    } else if (unprintable(c->point)) {
      append_hex(out, "\\u%04x", static_cast<unsigned>(c->point));
    } else {
      out += c->bytes;
    }
  }
  out += '"';
}

bool needs_quotes(std::string_view text) {
  if (text.empty()) return true;
  for (Utf8 at{text}; const auto c = at.next();) {
    if (!c->valid || unprintable(c->point) || c->point == ' ' || c->point == '"' || c->point == '=' ||
        c->point == '\\') {
      return true;
    }
  }
  return false;
}

std::string cut(std::string_view text) {
  if (text.size() <= value_bytes_max) return std::string(text);
  std::size_t end = value_bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(0, end)) + "…";
}

void append_text_value(std::string& out, const Value& value) {
  std::visit(Overload{
                 [&](bool v) { out += v ? "true" : "false"; },
                 [&](std::int64_t v) { append_number(out, v); },
                 [&](std::uint64_t v) { append_number(out, v); },
                 [&](double v) { append_real(out, v); },
                 [&](std::chrono::microseconds v) { append_duration(out, v); },
                 [&](std::string_view v) {
                   const std::string shown = cut(v);
                   needs_quotes(shown) ? append_quoted_text(out, shown) : static_cast<void>(out += shown);
                 },
             },
             value.held());
}

void append_json_member(std::string& out, const Field& field) {
  out += ",\"";
  out += field.name;
  const auto* duration = std::get_if<std::chrono::microseconds>(&field.value.held());
  out += duration ? "_ms\":" : "\":";
  std::visit(
      Overload{
          [&](bool v) { out += v ? "true" : "false"; },
          [&](std::int64_t v) { append_number(out, v); },
          [&](std::uint64_t v) { append_number(out, v); },
          [&](double v) { append_real(out, v); },
          [&](std::chrono::microseconds v) { append_real(out, static_cast<double>(v.count()) / 1000.0); },
          [&](std::string_view v) { append_json_string(out, cut(v)); },
      },
      field.value.held());
}

}  // namespace

std::string text_line(std::string_view event, std::span<const Field> fields) {
  std::string out{event};
  for (const Field& field : fields) {
    out += ' ';
    out += field.name;
    out += '=';
    append_text_value(out, field.value);
  }
  return out;
}

std::string text_value(std::string_view text) {
  std::string out;
  append_text_value(out, text);
  return out;
}

std::string json_members(std::string_view event, std::span<const Field> fields) {
  std::string out = "\"event\":";
  append_json_string(out, event);
  for (const Field& field : fields) append_json_member(out, field);
  return out;
}

}  // namespace outbox::log
