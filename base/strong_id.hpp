#pragma once
// Ids that cannot be mixed up: a RowId is not a LaneId, though both are integers.

#include <compare>
#include <cstddef>
#include <functional>

namespace outbox {

template <class Tag, class Rep>
struct StrongId {
  using rep = Rep;
  Rep value{};

  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep v) : value(v) {}
  friend constexpr auto operator<=>(const StrongId&, const StrongId&) = default;
};

}  // namespace outbox

template <class Tag, class Rep>
struct std::hash<outbox::StrongId<Tag, Rep>> {
  std::size_t operator()(const outbox::StrongId<Tag, Rep>& id) const noexcept {
    return std::hash<Rep>{}(id.value);
  }
};
