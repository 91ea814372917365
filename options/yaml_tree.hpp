#pragma once
// A YAML document as a tree that remembers where everything stood, and refuses what a configuration must not
// hide: duplicate keys, tabs as indentation, anchors and aliases, a second document. yaml-cpp's own tree
// reports none of them.

#include <tl/expected.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "options/fault.hpp"

namespace outbox::config {

struct YamlEntry;

struct YamlNode {
  enum class Kind { null, scalar, map, list };
  Kind kind = Kind::null;
  Place place;
  std::string text;                ///< of a scalar
  std::vector<YamlEntry> entries;  ///< of a map, in the file's order, no key twice
  std::vector<YamlNode> nodes;     ///< of a list
};

struct YamlEntry {
  std::string key;
  Place place;
  YamlNode value;
};

/// The entry of `map` with that key; nullptr: none, or it is no map.
[[nodiscard]] const YamlEntry* find(const YamlNode& map, std::string_view key);

/// The largest text that is read.
inline constexpr std::size_t yaml_bytes_max = 1 << 20;

/// What was read, and every fault met on the way. `root` is usable beside duplicate keys (the first one
/// counts) and empty beside a syntax error, behind which nothing can be read.
struct YamlDocument {
  YamlNode root;
  Faults faults;
};
[[nodiscard]] YamlDocument parse_yaml(const std::string& text);

[[nodiscard]] std::string_view to_string(YamlNode::Kind kind) noexcept;

}  // namespace outbox::config
