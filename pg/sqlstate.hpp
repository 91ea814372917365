#pragma once
// One pure table: what a SQLSTATE means for the caller. Source: PostgreSQL's appendix "Error Codes".

#include <string_view>

#include "base/error.hpp"

namespace outbox::pg {

/// Shape: five characters. An unknown code is classed by its class (first two), an unknown class is fatal.
/// retry: 40001, 40P01, 55P03, 53xxx, 57014 (our own cancel) …; reconnect: 08xxx, 57P0x; in_doubt: 08007,
/// 40003; quarantine: 22xxx and 23xxx (this row's data); fatal: 28xxx, 3Dxxx, 42xxx and the rest.
[[nodiscard]] Disposition classify_sqlstate(std::string_view sqlstate) noexcept;

}  // namespace outbox::pg
