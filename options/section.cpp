#include "options/section.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "options/suggest.hpp"

namespace outbox::config {
namespace {

constexpr std::size_t shown_bytes_max = 60;

Value table_value(const OptionFacts& facts, std::string_view text) {
  const auto value = parse_value(facts.kind, text, facts.choices);
  OUTBOX_CHECK(value.has_value(), "defaults of the option table are of their option's kind");
  return *value;
}

std::int64_t bound(const OptionFacts& facts, std::string_view text) {
  const Kind kind = facts.kind == Kind::text ? Kind::count : facts.kind;
  const auto value = parse_value(kind, text);
  OUTBOX_CHECK(value.has_value(), "bounds of the option table are of their option's kind");
  return std::get<std::int64_t>(*value);
}

bool in_bounds(const OptionFacts& facts, const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  const std::int64_t amount = text ? static_cast<std::int64_t>(text->size()) : std::get<std::int64_t>(value);
  if (facts.kind == Kind::duration && !facts.choices.empty() && amount == endless) return true;
  if (!facts.lowest.empty() && amount < bound(facts, facts.lowest)) return false;
  return facts.highest.empty() || amount <= bound(facts, facts.highest);
}

std::string wanted(const OptionFacts& facts) {
  switch (facts.kind) {
    case Kind::text:
      return "text";
    case Kind::count:
      return "a whole number";
    case Kind::duration:
      return "a duration such as 250ms";
    case Kind::size:
      return "a size such as 64MiB";
    case Kind::choice:
      return "one of " + bounds_said(facts);
  }
  return "a value";
}

// The words that may stand as keys below `prefix`.
std::vector<std::string_view> keys_below(const Level& level, const std::string& prefix) {
  std::vector<std::string_view> keys;
  for (const OptionFacts* facts : level.options) {
    if (!facts->path.starts_with(prefix)) continue;
    const auto rest = facts->path.substr(prefix.size());
    const auto key = rest.substr(0, rest.find('.'));
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  }
  if (prefix.empty()) keys.insert(keys.end(), level.other_keys.begin(), level.other_keys.end());
  return keys;
}

// The section where `key`, with or without it, is an option.
std::optional<std::string_view> home_of(const Level& level, std::string_view key) {
  for (const OptionFacts* facts : level.options) {
    const auto dot = facts->path.rfind('.');
    if (dot == std::string_view::npos) continue;
    if (facts->path == key || facts->path.substr(dot + 1) == key) return facts->path.substr(0, dot);
  }
  return std::nullopt;
}

}  // namespace

std::string joined(const std::string& where, std::string_view path) {
  if (where.empty()) return std::string(path);
  return path.empty() ? where : where + "." + std::string(path);
}

std::string shown(std::string_view raw) {
  std::string out = "`";
  for (const char c : raw.substr(0, shown_bytes_max)) {
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return out + (raw.size() > shown_bytes_max ? "…`" : "`");
}

Origins SectionReader::read(const Level& level, const YamlNode& map) {
  origins_.clear();
  seen_.clear();
  for (std::size_t i = 0; i < level.options.size(); ++i) {
    const OptionFacts& facts = *level.options[i];
    if (!facts.required) level.store(i, table_value(facts, facts.fallback));
  }
  read_map(level, map, "");
  for (const OptionFacts* facts : level.options) {
    if (facts->required && !seen_.contains(facts->path)) {
      fault(map.place, joined(level.where, facts->path), "is missing");
    }
  }
  return std::move(origins_);
}

void SectionReader::read_map(const Level& level, const YamlNode& map, const std::string& prefix) {
  if (map.kind == YamlNode::Kind::null) return;  // a section whose every line is commented out
  if (map.kind != YamlNode::Kind::map) {
    const std::string path = prefix.empty() ? "" : prefix.substr(0, prefix.size() - 1);
    fault(map.place, joined(level.where, path), "must be a mapping, not " + std::string(to_string(map.kind)));
    return;
  }
  for (const YamlEntry& entry : map.entries) {
    const std::string path = prefix + entry.key;
    if (prefix.empty() && std::ranges::find(level.other_keys, entry.key) != level.other_keys.end()) continue;
    const bool word = entry.key.find('.') == std::string::npos;
    const auto same = std::ranges::find(level.options, path, [](const auto* facts) { return facts->path; });
    const auto begins = [&](const auto* facts) { return facts->path.starts_with(path + "."); };
    if (word && same != level.options.end()) {
      read_option(level, static_cast<std::size_t>(same - level.options.begin()), entry.value, entry.place);
    } else if (word && std::ranges::any_of(level.options, begins)) {
      read_map(level, entry.value, path + ".");
    } else {
      unknown_key(level, entry, prefix);
    }
  }
}

std::optional<Expanded> SectionReader::scalar(const YamlNode& node, const std::string& path,
                                              MayNameFile secret, const std::string& wanted) {
  if (node.kind != YamlNode::Kind::scalar) {
    fault(node.place, path, "expects " + wanted + ", not " + std::string(to_string(node.kind)));
    return std::nullopt;
  }
  auto expanded = expand(node.text, secret, surroundings_);
  if (expanded && expanded->text.find('\0') != std::string::npos) {
    expanded = tl::unexpected(std::string("holds a NUL character"));
  }
  if (!expanded) {
    fault(node.place, path, expanded.error());
    return std::nullopt;
  }
  return std::move(*expanded);
}

void SectionReader::read_option(const Level& level, std::size_t option, const YamlNode& node, Place place) {
  const OptionFacts& facts = *level.options[option];
  const std::string path = joined(level.where, facts.path);
  seen_.emplace(facts.path);
  if (node.kind == YamlNode::Kind::null) {
    fault(place, path,
          "has no value: write " + wanted(facts) + (facts.required ? "" : ", or leave the line out"));
    return;
  }
  const auto may_name_file = facts.secret == Secret::no ? MayNameFile::no : MayNameFile::yes;
  const auto text = scalar(node, path, may_name_file, wanted(facts));
  if (!text) return;
  const std::string named = facts.secret == Secret::no ? shown(node.text) + " " : "";
  const auto value = parse_value(facts.kind, text->text, facts.choices);
  if (!value) {
    fault(node.place, path, named + value.error());
  } else if (!in_bounds(facts, *value)) {
    fault(node.place, path, named + "is out of bounds: " + bounds_said(facts));
  } else {
    level.store(option, *value);
    origins_[std::string(facts.path)] = {node.place, text->from};
  }
}

void SectionReader::unknown_key(const Level& level, const YamlEntry& entry, const std::string& prefix) {
  const auto keys = keys_below(level, prefix);
  std::string message = "is not an option here";
  if (const auto home = home_of(level, entry.key)) {
    message.append("; it belongs under `").append(*home).append("`");
  } else if (const auto meant = closest(entry.key, keys)) {
    message.append("; did you mean `").append(*meant).append("`?");
  } else {
    message += "; there are ";
    for (std::size_t i = 0; i < keys.size(); ++i) message.append(i == 0 ? "" : ", ").append(keys[i]);
  }
  const std::string name = shown(entry.key);
  fault(entry.place, joined(level.where, prefix + name.substr(1, name.size() - 2)), message);
}

}  // namespace outbox::config
