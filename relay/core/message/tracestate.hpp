#pragma once
// The W3C header `tracestate`, as far as the relay adds to it. Pure.
// Source: https://www.w3.org/TR/trace-context/#tracestate-header

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "relay/core/types.hpp"

namespace outbox::relay {

inline constexpr std::string_view traceparent_name = "traceparent";
inline constexpr std::string_view tracestate_name = "tracestate";

[[nodiscard]] bool has_traceparent(std::span<const Header> headers);

/// Shape: `outboxd=PIPELINE:ID`, then what the row's own tracestate has, without an earlier entry of that
/// key, up to 32 entries in all.
[[nodiscard]] std::string stamped(std::string_view pipeline, RowId id, std::span<const Header> headers);

/// Units: bytes that it can add to a record.
[[nodiscard]] std::int64_t stamp_size_max(std::string_view pipeline);

}  // namespace outbox::relay
