#include "options/expand.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace outbox::config {
namespace {

constexpr std::string_view file_prefix = "file:";
constexpr std::size_t file_bytes_max = 65'536;

using Text = tl::expected<std::string, std::string>;

tl::unexpected<std::string> wrong(std::string message) {
  return tl::unexpected(std::move(message));
}

bool is_variable_name(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  return name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
         std::string_view::npos;
}

// `inside` is what stands between the braces.
Text variable(std::string_view inside, const Surroundings& surroundings) {
  const auto dash = inside.find(":-");
  const std::string name{inside.substr(0, dash)};
  if (!is_variable_name(name)) return wrong("holds ${" + std::string(inside) + "}, which names no variable");
  auto value = surroundings.variable(name);
  if (dash != std::string_view::npos) {
    return value && !value->empty() ? *value : std::string(inside.substr(dash + 2));
  }
  if (!value)
    return wrong("names ${" + name + "}, which is not set: set it or write ${" + name + ":-default}");
  return *value;
}

tl::expected<Expanded, std::string> expand_variables(std::string_view raw, const Surroundings& surroundings) {
  Expanded out;
  while (!raw.empty()) {
    const auto dollar = raw.find('$');
    out.text += raw.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    raw.remove_prefix(dollar + 1);
    if (raw.starts_with('$')) {
      raw.remove_prefix(1);
      out.text += '$';
      continue;
    }
    if (!raw.starts_with('{')) {
      out.text += '$';
      continue;
    }
    const auto end = raw.find('}');
    if (end == std::string_view::npos) return wrong("holds a ${ without its }; a literal one is written $${");
    const auto value = variable(raw.substr(1, end - 1), surroundings);
    if (!value) return tl::unexpected(value.error());
    out.text += *value;
    const auto name_end = raw.substr(0, end).find(":-");
    out.from.append(out.from.empty() ? "$" : ", $")
        .append(raw.substr(0, std::min(name_end, end)))
        .append("}");
    raw.remove_prefix(end + 1);
  }
  return out;
}

tl::expected<Expanded, std::string> expand_file(std::string_view raw_path, const Surroundings& surroundings) {
  const auto path = expand_variables(raw_path, surroundings);
  if (!path) return tl::unexpected(path.error());
  auto content = surroundings.file(path->text);
  if (!content) return wrong("names the file " + path->text + ", which cannot be read: " + content.error());
  while (content->ends_with('\n') || content->ends_with('\r')) content->pop_back();
  if (content->empty()) return wrong("names the file " + path->text + ", which is empty");
  return Expanded{std::move(*content), std::string(file_prefix) + path->text};
}

Text read_small_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return wrong(std::strerror(errno));
  std::string content(file_bytes_max + 1, '\0');
  in.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (in.bad() || (in.fail() && !in.eof())) return wrong(std::strerror(errno));
  content.resize(static_cast<std::size_t>(in.gcount()));
  if (content.size() > file_bytes_max) return wrong("it is larger than 64KiB");
  return content;
}

}  // namespace

Surroundings process_surroundings() {
  return {[](const std::string& name) -> std::optional<std::string> {
            const char* value = std::getenv(name.c_str());
            return value ? std::optional<std::string>(value) : std::nullopt;
          },
          read_small_file};
}

tl::expected<Expanded, std::string> expand(std::string_view raw, MayNameFile may_name_file,
                                           const Surroundings& surroundings) {
  if (may_name_file == MayNameFile::yes && raw.starts_with(file_prefix)) {
    return expand_file(raw.substr(file_prefix.size()), surroundings);
  }
  return expand_variables(raw, surroundings);
}

}  // namespace outbox::config
