#include "options/suggest.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

namespace outbox::config {
namespace {

constexpr std::size_t typed_bytes_max = 100;

std::string folded(std::string_view word) {
  std::string out;
  for (const char c : word)
    out += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Optimal string alignment: edit distance in which two swapped neighbours count once.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::optional<std::string_view> closest(std::string_view typed, std::span<const std::string_view> words) {
  if (typed.size() > typed_bytes_max) return std::nullopt;
  std::optional<std::string_view> best;
  std::size_t best_distance = 0;
  for (const std::string_view word : words) {
    const std::size_t d = distance(folded(typed), folded(word));
    const bool near = d <= std::max<std::size_t>(1, word.size() / 3);
    if (near && (!best || d < best_distance)) {
      best = word;
      best_distance = d;
    }
  }
  return best;
}

}  // namespace outbox::config
