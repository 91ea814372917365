#include "relay/config/secrets.hpp"

#include <algorithm>
#include <cctype>

namespace outbox::config {
namespace {

bool same_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string mask_authority(std::string_view uri) {
  const auto scheme = uri.find("://");
  if (scheme == std::string_view::npos) return std::string(uri);
  const auto begin = scheme + 3;
  const auto colon = uri.find(':', begin);
  const auto at = uri.rfind('@');
  if (at == std::string_view::npos || colon == std::string_view::npos || colon > at) return std::string(uri);
  return std::string(uri.substr(0, colon + 1)).append(mask).append(uri.substr(at));
}

// The end of a value that begins at `at`: a quoted one ends with its quote, else at '&' or white space.
std::size_t value_end(std::string_view text, std::size_t at) {
  if (at >= text.size() || text[at] != '\'') return std::min(text.find_first_of("& \t\r\n", at), text.size());
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '\'') {
      return i + 1;
    }
  }
  return text.size();
}

}  // namespace

std::string masked_uri(std::string_view uri) {
  std::string out = mask_authority(uri);
  constexpr std::string_view word = "password";
  for (std::size_t at = 0; at + word.size() <= out.size(); ++at) {
    if (!same_ignoring_case(std::string_view(out).substr(at, word.size()), word)) continue;
    std::size_t value = out.find_first_not_of(" \t", at + word.size());
    if (value == std::string::npos || out[value] != '=') continue;
    value = std::min(out.find_first_not_of(" \t", value + 1), out.size());
    const std::size_t end = value_end(out, value);
    out.replace(value, end - value, mask);
    at = value;
  }
  return out;
}

}  // namespace outbox::config
