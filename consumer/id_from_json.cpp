#include <nlohmann/json.hpp>

#include <stdexcept>

#include "outbox/foreign_id.hpp"

namespace outbox {
namespace {

using nlohmann::json;

std::vector<json::json_pointer> parse_pointers(const std::vector<std::string>& texts) {
  if (texts.empty()) throw std::invalid_argument("outbox: id_from_json needs a JSON pointer");
  std::vector<json::json_pointer> out;
  for (const auto& text : texts) {
    try {
      out.emplace_back(text);
    } catch (const json::exception& e) {
      throw std::invalid_argument("outbox: id_from_json: `" + text + "` is no JSON pointer: " + e.what());
    }
  }
  return out;
}

bool names(const json& value) {
  return value.is_string() || value.is_number_integer() || value.is_boolean();
}

}  // namespace

IdOf id_from_json(const std::vector<std::string>& pointers) {
  return [parsed = parse_pointers(pointers)](const Record& record) -> std::optional<std::string> {
    if (!record.body) return std::nullopt;
    const json body = json::parse(*record.body, nullptr, false);
    json parts = json::array();
    for (const auto& pointer : parsed) {
      if (!body.contains(pointer) || !names(body[pointer])) return std::nullopt;
      parts.push_back(body[pointer]);
    }
    return parts.dump();
  };
}

}  // namespace outbox
