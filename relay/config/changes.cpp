#include "relay/config/changes.hpp"

#include <algorithm>

#include "options/section.hpp"
#include "relay/config/load.hpp"
#include "relay/config/options.hpp"

namespace outbox::config {
namespace {

template <class Target>
void compare(std::span<const Option<Target>> options, const Target& was, const Target& is,
             const std::string& where, Changes& out) {
  for (const auto& option : options) {
    if (option.load(was) == option.load(is)) continue;
    (option.facts.reload == Reload::live ? out.live : out.restart)
        .push_back(joined(where, option.facts.path));
  }
}

const Pipeline* named(const Config& config, const std::string& name) {
  const auto at = std::ranges::find(config.pipelines, name, &Pipeline::name);
  return at == config.pipelines.end() ? nullptr : &*at;
}

void compare_kafka(const Pipeline& was, const Pipeline& is, const std::string& where, Changes& out) {
  std::map<std::string, std::string> all = is.kafka;
  all.insert(was.kafka.begin(), was.kafka.end());
  for (const auto& [property, value] : all) {
    const auto before = was.kafka.find(property);
    const auto after = is.kafka.find(property);
    const bool same = before != was.kafka.end() && after != is.kafka.end() && before->second == after->second;
    if (!same) out.restart.push_back(joined(where, std::string{kafka_section} + "." + property));
  }
}

template <class Target>
void take_live(std::span<const Option<Target>> options, Target& to, const Target& from) {
  for (const auto& option : options)
    if (option.facts.reload == Reload::live) option.store(to, option.load(from));
}

}  // namespace

Changes changes(const Config& was, const Config& is) {
  Changes out;
  Config as_is = is;
  if (as_is.instance.empty()) as_is.instance = was.instance;
  compare(process_options(), was, as_is, "", out);
  for (const Pipeline& p : was.pipelines)
    if (named(is, p.name) == nullptr) out.restart.push_back(pipeline_path(p.name) + " (removed)");
  for (const Pipeline& p : is.pipelines) {
    const Pipeline* before = named(was, p.name);
    if (before == nullptr) {
      out.restart.push_back(pipeline_path(p.name) + " (added)");
      continue;
    }
    compare(pipeline_options(), *before, p, pipeline_path(p.name), out);
    compare_kafka(*before, p, pipeline_path(p.name), out);
  }
  return out;
}

Config with_live(Config was, const Config& is) {
  take_live(process_options(), was, is);
  for (Pipeline& p : was.pipelines)
    if (const Pipeline* now = named(is, p.name)) take_live(pipeline_options(), p, *now);
  return was;
}

}  // namespace outbox::config
