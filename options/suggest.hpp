#pragma once
// "Did you mean …?"

#include <optional>
#include <span>
#include <string_view>

namespace outbox::config {

/// The word nearest to `typed` by edits (insert, delete, replace, swap of neighbours; case and '-' or '_' do
/// not count), if a third of its letters or fewer differ.
[[nodiscard]] std::optional<std::string_view> closest(std::string_view typed,
                                                      std::span<const std::string_view> words);

}  // namespace outbox::config
