#include "relay/core/message/topic_map.hpp"

#include <algorithm>

#include "relay/core/message/topic_name.hpp"

namespace outbox::relay {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(' ');
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(' ') - from + 1);
}

std::vector<std::string_view> entries_of(std::string_view list) {
  std::vector<std::string_view> out;
  while (!list.empty()) {
    const auto comma = list.find(',');
    if (const auto entry = trimmed(list.substr(0, comma)); !entry.empty()) out.push_back(entry);
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return out;
}

auto wrong(std::string_view entry, std::string_view why) {
  return failure(Disposition::fatal, "`" + std::string(entry) + "` " + std::string(why));
}

Result<TopicPattern> parse_pattern(std::string_view text) {
  const auto star = text.find('*');
  TopicPattern out{std::string(text.substr(0, star)), {}, star != std::string_view::npos};
  if (out.open) out.after = text.substr(star + 1);
  if (out.after.find('*') != std::string::npos) return wrong(text, "has more than one `*`");
  const std::string letters = out.before + out.after;
  if (letters.empty() && out.open) return out;
  if (const auto fault = topic_name_fault(letters); fault && letters != "." && letters != "..")
    return wrong(text, "is no topic: " + std::string(*fault));
  return out;
}

Result<TopicRewrite> parse_rewrite(std::string_view text) {
  const auto sign = text.find('=');
  if (sign == std::string_view::npos) return wrong(text, "has no `=`: write from=to");
  auto from = parse_pattern(trimmed(text.substr(0, sign)));
  if (!from) return failure(from.error());
  auto to = parse_pattern(trimmed(text.substr(sign + 1)));
  if (!to) return failure(to.error());
  if (to->open && !from->open) return wrong(text, "has a `*` behind the `=` and none before it");
  return TopicRewrite{std::move(*from), std::move(*to)};
}

}  // namespace

bool TopicPattern::fits(std::string_view name) const {
  if (!open) return name == before;
  return name.size() >= before.size() + after.size() && name.starts_with(before) && name.ends_with(after);
}

Result<TopicMap> TopicMap::make(const TopicRules& rules) {
  TopicMap out;
  const auto allowed = entries_of(rules.allow);
  const auto rewrites = entries_of(rules.rewrite);
  if (allowed.empty()) return wrong(rules.allow, "allows no topic: `*` allows all");
  if (allowed.size() > patterns_max || rewrites.size() > patterns_max)
    return wrong(std::to_string(std::max(allowed.size(), rewrites.size())), "entries are more than 256");
  for (const std::string_view entry : allowed) {
    auto pattern = parse_pattern(entry);
    if (!pattern) return failure(pattern.error());
    out.allow_.push_back(std::move(*pattern));
  }
  for (const std::string_view entry : rewrites) {
    auto rewrite = parse_rewrite(entry);
    if (!rewrite) return failure(rewrite.error());
    out.rewrites_.push_back(std::move(*rewrite));
  }
  out.prefix_ = rules.prefix;
  if (out.prefix_.empty()) return out;
  if (const auto fault = topic_name_fault(out.prefix_ + "x")) return wrong(rules.prefix, *fault);
  return out;
}

std::optional<std::string_view> TopicMap::refusal(std::string_view topic) const {
  const bool named = std::ranges::any_of(allow_, [&](const auto& p) { return p.fits(topic); });
  if (!named && !allow_.empty()) return "topics.allow does not name it";
  const std::string name = to_kafka(topic);
  if (reserved_.contains(name))
    return "it is the ledger of a pipeline, which takes no rows: correct the row's topic";
  return no_destination_because(name);
}

std::string TopicMap::to_kafka(std::string_view topic) const {
  const auto fitting = std::ranges::find_if(rewrites_, [&](const auto& r) { return r.from.fits(topic); });
  if (fitting == rewrites_.end()) return prefix_ + std::string(topic);
  const TopicPattern& from = fitting->from;
  std::string out = prefix_ + fitting->to.before;
  if (fitting->to.open)
    out += topic.substr(from.before.size(), topic.size() - from.before.size() - from.after.size());
  return out + fitting->to.after;
}

}  // namespace outbox::relay
