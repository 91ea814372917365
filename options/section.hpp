#pragma once
// Reads a YAML mapping against one level of an option table. It collects faults and never stops.

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "options/expand.hpp"
#include "options/fault.hpp"
#include "options/option.hpp"
#include "options/yaml_tree.hpp"

namespace outbox::config {

/// Where an option's value was written. An option without an Origin has its default.
struct Origin {
  Place place;
  std::string from;  ///< "${PGURI}" or "file:/run/secrets/uri"; empty: written out
};
using Origins = std::map<std::string, Origin>;  ///< by path: "log.level", "source.mode", "kafka.linger.ms"

/// A level of the table, with its types left out: what is known of each option, and where a value goes.
struct Level {
  std::vector<const OptionFacts*> options;
  std::function<void(std::size_t option, const Value& value)> store;
  std::vector<std::string_view> other_keys;  ///< further keys of this level, read by somebody else
  std::string where;                         ///< "" or "pipelines[payments]", put before a path in faults
};

template <class Target>
Level level_of(std::span<const Option<Target>> options, Target& target,
               std::vector<std::string_view> other_keys, std::string where) {
  Level level{{}, {}, std::move(other_keys), std::move(where)};
  for (const auto& option : options) level.options.push_back(&option.facts);
  level.store = [options, &target](std::size_t i, const Value& value) { options[i].store(target, value); };
  return level;
}

class SectionReader {
 public:
  SectionReader(const Surroundings& surroundings, Faults& faults)
      : surroundings_(surroundings), faults_(faults) {}

  /// Stores the defaults, then what `map` says; names what is required and missing. The origins of what was
  /// set.
  Origins read(const Level& level, const YamlNode& map);

  /// A scalar after expansion; nullopt: it was none, and that fault is noted. `secret`: may name a file.
  std::optional<Expanded> scalar(const YamlNode& node, const std::string& path, MayNameFile secret,
                                 const std::string& wanted);

  void fault(Place place, std::string path, std::string message) {
    faults_.push_back({place, std::move(path), std::move(message)});
  }

 private:
  void read_map(const Level& level, const YamlNode& map, const std::string& prefix);
  void read_option(const Level& level, std::size_t option, const YamlNode& node, Place place);
  void unknown_key(const Level& level, const YamlEntry& entry, const std::string& prefix);

  const Surroundings& surroundings_;
  Faults& faults_;
  Origins origins_;
  std::set<std::string, std::less<>> seen_;  // options that were written, rightly or wrongly
};

/// "pipelines[payments]" and "source.mode" joined.
[[nodiscard]] std::string joined(const std::string& where, std::string_view path);

/// A value in backquotes for a fault: cut, on one line; `raw`, so that what a variable held is never shown.
[[nodiscard]] std::string shown(std::string_view raw);

}  // namespace outbox::config
