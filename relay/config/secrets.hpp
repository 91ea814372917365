#pragma once
// Keeping passwords out of what is shown.

#include <string>
#include <string_view>

namespace outbox::config {

inline constexpr std::string_view mask = "****";

/// A libpq connection text with every password in it masked: between the first ':' and the last '@' of a URI,
/// and the value of each password=… or sslpassword=…, as a URI's parameter or a keyword. Masks rather too
/// much than too little.
[[nodiscard]] std::string masked_uri(std::string_view uri);

}  // namespace outbox::config
