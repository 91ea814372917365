#pragma once
// What is derived from an option table for people: a table in Markdown, a commented sample in YAML. Pure; any
// thread.

#include <span>
#include <string>
#include <string_view>

#include "options/option.hpp"

namespace outbox::config {

/// A Markdown table of the options: name, default, values, meaning.
void append_option_table(std::string& out, std::span<const OptionFacts* const> options);

/// Each option with its doc as a comment above it: the required ones with their example, the others as
/// `#key: default`. `indent` is put before each line.
[[nodiscard]] std::string sample_lines(std::span<const OptionFacts* const> options,
                                       const std::string& indent);

/// `doc` as comment lines of 100 columns.
[[nodiscard]] std::string comment_lines(std::string_view doc, const std::string& indent);

/// A YAML scalar that reads back as `text`, also where that holds `$`; plain where it can be.
[[nodiscard]] std::string yaml_scalar(std::string_view text);

/// The same for a mapping's key, in which `$` means nothing.
[[nodiscard]] std::string yaml_key(std::string_view text);

}  // namespace outbox::config
