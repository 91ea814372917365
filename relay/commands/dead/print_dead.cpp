#include <nlohmann/json.hpp>

#include "relay/commands/dead/dead.hpp"
#include "relay/log/line.hpp"

namespace outbox::commands {
namespace {

using nlohmann::json;

std::string shown(std::string_view text) {
  return log::text_value(text);
}

std::string message_text(const DeadMessage& m) {
  return "  id " + std::to_string(m.id) + "  topic " + shown(m.topic) +
         (m.key ? "  key " + shown(*m.key) : "  no key") + "  written " + m.created_at + "  attempts " +
         std::to_string(m.attempts) + "  " + shown(m.reason) + "\n";
}

json message_json(const std::string& name, const DeadMessage& m) {
  return {{"pipeline", name},
          {"id", m.id},
          {"msg_id", m.msg_id},
          {"topic", m.topic},
          {"key", m.key ? json(*m.key) : json()},
          {"created_at", m.created_at},
          {"attempts", m.attempts},
          {"generation", m.generation},
          {"body_bytes", m.body_bytes},
          {"reason", m.reason}};
}

std::string line(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string dead_text(const std::string& name, const DeadList& list) {
  std::string out = shown(name) + ": " + std::to_string(list.total) + " dead\n";
  for (const DeadMessage& m : list.messages) out += message_text(m);
  const auto more = list.total - static_cast<std::int64_t>(list.messages.size());
  return more > 0 ? out + "  and " + std::to_string(more) + " more\n" : out;
}

std::string dead_text(const DeadDetail& d) {
  std::string out = message_text(d.message);
  out += "  msg_id " + d.message.msg_id + "  generation " + std::to_string(d.message.generation) + "\n";
  out += "  headers " + shown(d.headers) + "\n";
  out += "  body " + std::to_string(d.message.body_bytes) + " bytes" +
         (d.body ? "  " + shown(*d.body) : std::string{}) + "\n";
  if (d.held_since) {
    out += "  its key is on hold since " + *d.held_since + ", " + std::to_string(d.held_behind) +
           " rows wait behind it\n";
  }
  return out;
}

std::string dead_json(const std::string& name, const DeadList& list) {
  std::string out;
  for (const DeadMessage& m : list.messages) out += line(message_json(name, m));
  return out;
}

std::string dead_json(const std::string& name, const DeadDetail& d) {
  json out = message_json(name, d.message);
  out["headers"] = json::parse(d.headers, nullptr, false);
  if (d.body) out["body"] = *d.body;
  out["held_behind"] = d.held_behind;
  out["held_since"] = d.held_since ? json(*d.held_since) : json();
  return line(out);
}

}  // namespace outbox::commands
