#pragma once
// What a view is told apart by once it was made: its comment, which holds the mapping.

#include <string>
#include <string_view>

#include "relay/commands/migrate/view.hpp"

namespace outbox::relay {

/// How the comment of every view begins that outboxd made.
inline constexpr std::string_view view_comment_start = "outboxd view ";

/// Shape: equal for two mappings exactly if they make the same view of the same table.
[[nodiscard]] std::string view_comment(const View& view, const pg::TableName& table);

}  // namespace outbox::relay
