#include <algorithm>

#include "options/option_manual.hpp"
#include "relay/config/options.hpp"
#include "relay/config/print.hpp"
#include "relay/config/secrets.hpp"
#include "relay/core/kafka/properties.hpp"

namespace outbox::config {
namespace {

std::string origin_said(const Origins& origins, const std::string& path, const OptionFacts& facts) {
  const auto it = origins.find(path);
  if (it == origins.end()) {
    return facts.fallback_said.empty() ? "default" : "default: " + std::string(facts.fallback_said);
  }
  std::string out = "line " + std::to_string(it->second.place.line);
  return it->second.from.empty() ? out : out.append(", ").append(it->second.from);
}

// Writes options in the table's order, opening each section where it begins.
class Lines {
 public:
  explicit Lines(std::string indent) : indent_(std::move(indent)) {}

  void add(std::string_view path, const std::string& value, const std::string& comment) {
    const auto dot = path.find('.');
    const auto section = dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
    if (!section.empty() && section != section_) text_.append(indent_).append(section).append(":\n");
    section_ = section;
    add_key(section.empty() ? path : path.substr(dot + 1), section.empty() ? "" : "  ", value, comment);
  }
  void add_property(const std::string& key, const std::string& value, const std::string& comment) {
    if (section_ != kafka_section) text_.append(indent_).append(kafka_section).append(":\n");
    section_ = kafka_section;
    add_key(key, "  ", value, comment);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  void add_key(std::string_view key, std::string_view deeper, const std::string& value,
               const std::string& comment) {
    text_.append(indent_).append(deeper).append(key).append(": ").append(value);
    text_.append("  # ").append(comment).append("\n");
  }

  std::string indent_;
  std::string text_;
  std::string_view section_;
};

template <class Target>
void add_options(Lines& lines, std::span<const Option<Target>> options, const Target& target,
                 const Origins& origins, Secrets secrets) {
  for (const auto& option : options) {
    const OptionFacts& facts = option.facts;
    std::string value = format_value(facts.kind, option.load(target), facts.choices);
    if (facts.secret == Secret::uri && secrets == Secrets::masked) value = masked_uri(value);
    lines.add(facts.path, yaml_scalar(value), origin_said(origins, std::string(facts.path), facts));
  }
}

std::string pipeline_lines(const Pipeline& pipeline, const Origins& origins, Secrets secrets) {
  Lines lines("    ");
  add_options(lines, pipeline_options(), pipeline, origins, secrets);
  for (const auto& [property, value] : pipeline.kafka) {
    const bool masked = secrets == Secrets::masked && relay::secret_property(property);
    lines.add_property(yaml_key(property), yaml_scalar(masked ? mask : std::string_view(value)),
                       origin_said(origins, "kafka." + property, {}));
  }
  std::string text = lines.take();
  text[2] = '-';
  return text;
}

}  // namespace

std::string show(const Loaded& loaded, Secrets secrets) {
  Lines process("");
  add_options(process, process_options(), loaded.config, loaded.process, secrets);
  std::string out = process.take().append(pipelines_section).append(":\n");
  static const Origins none;
  for (std::size_t i = 0; i < loaded.config.pipelines.size(); ++i) {
    const Origins& origins = i < loaded.pipelines.size() ? loaded.pipelines[i] : none;
    out += pipeline_lines(loaded.config.pipelines[i], origins, secrets);
  }
  return out;
}

}  // namespace outbox::config
