#include "options/option_manual.hpp"

#include <algorithm>

namespace outbox::config {
namespace {

constexpr std::size_t sample_columns = 100;
constexpr std::string_view plain_letters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/+";
constexpr char hex[] = "0123456789abcdef";

void append_escaped(std::string& out, char c) {
  const auto byte = static_cast<unsigned char>(c);
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  if (byte < 0x20 || byte == 0x7f) {
    out.append("\\x").append(1, hex[byte >> 4U]).append(1, hex[byte & 0xFU]);
  } else {
    out += c;
  }
}

// "`poll`, `notify`", bounds, or nothing: a table's cell.
std::string values_cell(const OptionFacts& facts) {
  if (facts.kind != Kind::choice) return bounds_said(facts);
  std::string out;
  for (const auto word : split_choices(facts.choices)) {
    out.append(out.empty() ? "`" : ", `").append(word).append("`");
  }
  return out;
}

std::string default_cell(const OptionFacts& facts) {
  if (facts.required) return "required";
  if (!facts.fallback_said.empty()) return std::string(facts.fallback_said);
  return "`" + std::string(facts.fallback) + "`";
}

std::string sample_comment(const OptionFacts& facts, const std::string& indent) {
  std::string doc{facts.doc};
  if (const auto bounds = bounds_said(facts); !bounds.empty()) doc += " Values: " + bounds + ".";
  if (!facts.fallback_said.empty()) doc += " Default: " + std::string(facts.fallback_said) + ".";
  return comment_lines(doc, indent);
}

}  // namespace

void append_option_table(std::string& out, std::span<const OptionFacts* const> options) {
  out += "\n| option | default | values | meaning |\n|---|---|---|---|\n";
  for (const auto* row : options) {
    const OptionFacts& facts = *row;
    out.append("| `").append(facts.path).append("` | ").append(default_cell(facts)).append(" | ");
    out.append(values_cell(facts)).append(" | ").append(facts.doc);
    if (facts.secret != Secret::no) out += " A secret.";
    if (facts.reload == Reload::live) out += " A change takes effect when the file is read again.";
    out += " |\n";
  }
}

std::string comment_lines(std::string_view doc, const std::string& indent) {
  std::string out;
  std::string line = indent + "#";
  while (!doc.empty()) {
    const auto word = doc.substr(0, doc.find(' '));
    doc.remove_prefix(std::min(doc.size(), word.size() + 1));
    if (line.size() + 1 + word.size() > sample_columns) {
      out.append(line).append("\n");
      line = indent + "#";
    }
    line.append(" ").append(word);
  }
  return out.append(line).append("\n");
}

std::string sample_lines(std::span<const OptionFacts* const> options, const std::string& indent) {
  std::string out;
  std::string_view open;
  for (const auto* row : options) {
    const OptionFacts& facts = *row;
    const auto dot = facts.path.find('.');
    const auto section = dot == std::string_view::npos ? std::string_view{} : facts.path.substr(0, dot);
    if (section != open || section.empty()) out += "\n";
    if (!section.empty() && section != open) out.append(indent).append(section).append(":\n");
    open = section;
    const std::string deeper = section.empty() ? indent : indent + "  ";
    const auto key = section.empty() ? facts.path : facts.path.substr(dot + 1);
    out += sample_comment(facts, deeper);
    out.append(deeper).append(facts.required ? "" : "#").append(key).append(": ");
    out.append(yaml_scalar(facts.required ? facts.example : facts.fallback)).append("\n");
  }
  return out;
}

std::string bounds_said(const OptionFacts& facts) {
  if (facts.kind == Kind::choice) {
    std::string out;
    for (const auto word : split_choices(facts.choices)) out.append(out.empty() ? "" : ", ").append(word);
    return out;
  }
  if (facts.highest.empty()) return "";
  const std::string unit = facts.kind == Kind::text ? " characters" : "";
  if (facts.lowest.empty()) return "at most " + std::string(facts.highest) + unit;
  std::string out = std::string(facts.lowest) + " to " + std::string(facts.highest) + unit;
  return facts.choices.empty() ? out : out.append(", or ").append(facts.choices);
}

std::string yaml_scalar(std::string_view text) {
  std::string literal;
  for (const char c : text) literal.append(c == '$' ? 2 : 1, c);
  return yaml_key(literal);
}

std::string yaml_key(std::string_view text) {
  const bool plain = !text.empty() && text.find_first_not_of(plain_letters) == std::string_view::npos &&
                     text != "null" && text != "Null" && text != "NULL" && text[0] != '-' && text[0] != '.';
  if (plain) return std::string(text);
  std::string out = "\"";
  for (const char c : text) append_escaped(out, c);
  return out + "\"";
}

}  // namespace outbox::config
