#include "consumer/core/text.hpp"

#include <algorithm>

namespace outbox {
namespace {

unsigned at(std::string_view bytes, std::size_t i) {
  return static_cast<unsigned char>(bytes[i]);
}

/// Bytes of the character that begins at `i`; 0 where none does. Overlong forms, surrogates and NUL are none.
std::size_t character_bytes(std::string_view bytes, std::size_t i) {
  const unsigned lead = at(bytes, i);
  if (lead == 0) return 0;
  if (lead < 0x80) return 1;
  const std::size_t count = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || bytes.size() - i < count) return 0;
  for (std::size_t k = 1; k < count; ++k)
    if ((at(bytes, i + k) & 0xc0) != 0x80) return 0;
  const unsigned second = at(bytes, i + 1);
  if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f)) return 0;
  if ((lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f)) return 0;
  return count;
}

void append_json_string(std::string& out, std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  out.push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    if (const auto code = static_cast<unsigned char>(c); code < 0x20)
      out.append("\\u00").append({digits[code >> 4], digits[code & 15]});
    else
      out.push_back(c);
  }
  out.push_back('"');
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t have = std::min<std::size_t>(3, bytes.size() - i);
    unsigned group = at(bytes, i) << 16;
    if (have > 1) group |= at(bytes, i + 1) << 8;
    if (have > 2) group |= at(bytes, i + 2);
    for (std::size_t k = 0; k < 4; ++k) out.push_back(k <= have ? alphabet[group >> (18 - 6 * k) & 63] : '=');
  }
  return out;
}

void append_json_value(std::string& out, std::string_view bytes) {
  if (is_text(bytes)) return append_json_string(out, bytes);
  out.append("{\"base64\":\"").append(base64(bytes)).append("\"}");
}

}  // namespace

bool is_text(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size();) {
    const auto count = character_bytes(bytes, i);
    if (count == 0) return false;
    i += count;
  }
  return true;
}

std::string to_text(std::string_view bytes, std::size_t bytes_max) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size();) {
    const auto count = character_bytes(bytes, i);
    if (out.size() + std::max<std::size_t>(count, 1) > bytes_max) break;
    if (count == 0)
      out.push_back('?');
    else
      out.append(bytes.substr(i, count));
    i += std::max<std::size_t>(count, 1);
  }
  return out;
}

std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return text;
}

std::string headers_json(std::span<const Header> headers) {
  std::string out = "[";
  for (const auto& header : headers) {
    if (out.size() > 1) out.push_back(',');
    out.push_back('[');
    append_json_value(out, header.name);
    out.push_back(',');
    if (header.value)
      append_json_value(out, *header.value);
    else
      out.append("null");
    out.push_back(']');
  }
  return out.append("]");
}

std::string headers_object_json(std::span<const std::pair<std::string, std::string>> headers) {
  std::string out = "{";
  for (const auto& [name, value] : headers) {
    if (out.size() > 1) out.push_back(',');
    append_json_string(out, name);
    out.push_back(':');
    append_json_string(out, value);
  }
  return out.append("}");
}

}  // namespace outbox
