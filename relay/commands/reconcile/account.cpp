#include "relay/commands/reconcile/account.hpp"

#include <nlohmann/json.hpp>

#include "relay/log/line.hpp"

namespace outbox::commands {
namespace {

using nlohmann::json;

std::string line(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string shown(std::string_view text) {
  return log::text_value(text);
}

std::string counted(std::int64_t count, std::string_view what) {
  return "  " + std::string(12 - std::min<std::size_t>(12, std::to_string(count).size()), ' ') +
         std::to_string(count) + "  " + std::string{what} + "\n";
}

std::string side_text(const Side& side) {
  std::string out =
      (side.name == "kafka" ? "in Kafka" : "at consumer " + shown(side.name)) + std::string{"\n"};
  for (const auto& [name, count] : side.counted) out += counted(count, name);
  for (const auto& [wrong, count] : side.wrong) out += counted(count, "! " + std::string{to_string(wrong)});
  for (const auto& [unknown, count] : side.unknown)
    out += counted(count, "? " + std::string{meaning(unknown)});
  return out;
}

json side_json(const Side& side) {
  json out{{"counted", side.counted}, {"wrong", json::object()}, {"unknown", json::object()}};
  for (const Wrong w : all_wrongs)
    out["wrong"][std::string{to_string(w)}] = side.wrong.contains(w) ? side.wrong.at(w) : 0;
  for (const auto& [unknown, count] : side.unknown) out["unknown"][std::string{to_string(unknown)}] = count;
  return out;
}

}  // namespace

std::string_view to_string(Wrong wrong) {
  switch (wrong) {
    case Wrong::missing:
      return "missing";
    case Wrong::repeated:
      return "repeated";
    case Wrong::conflicting:
      return "conflicting";
    case Wrong::orphan:
      return "orphan";
  }
  return "";
}

std::string_view to_string(Unknown unknown) {
  switch (unknown) {
    case Unknown::record_expired:
      return "record_expired";
    case Unknown::record_compacted:
      return "record_compacted";
    case Unknown::record_hidden:
      return "record_hidden";
    case Unknown::topic_gone:
      return "topic_gone";
    case Unknown::row_gone:
      return "row_gone";
    case Unknown::forgotten:
      return "forgotten";
    case Unknown::before_consumer:
      return "before_consumer";
    case Unknown::topic_not_read:
      return "topic_not_read";
  }
  return "";
}

std::string_view meaning(Unknown unknown) {
  switch (unknown) {
    case Unknown::record_expired:
      return "not known: the topic's retention has dropped the record";
    case Unknown::record_compacted:
      return "not known: the topic is compacted, a later record of the key may have replaced it";
    case Unknown::record_hidden:
      return "not known yet: the record lies behind an open transaction";
    case Unknown::topic_gone:
      return "not known: the topic is not there any more";
    case Unknown::row_gone:
      return "not known: the outbox does not keep the row (after_sent: delete, retention, or purge)";
    case Unknown::forgotten:
      return "not known: the consumer has forgotten ids of this age";
    case Unknown::before_consumer:
      return "not known: sent before the consumer was registered";
    case Unknown::topic_not_read:
      return "not known: the consumer has nothing of this topic; name it with --topic if it should";
  }
  return "";
}

std::int64_t Account::wrong(Wrong kind) const {
  const auto of = [&](const Side& side) { return side.wrong.contains(kind) ? side.wrong.at(kind) : 0; };
  std::int64_t out = of(kafka);
  for (const Side& side : consumers) out += of(side);
  return out;
}

std::int64_t Account::unknown() const {
  std::int64_t out = 0;
  for (const auto& [_, count] : kafka.unknown) out += count;
  for (const Side& side : consumers)
    for (const auto& [_, count] : side.unknown) out += count;
  return out;
}

std::string finding_text(const std::string& pipeline, const Finding& f) {
  std::string out = shown(pipeline) + ": " + std::string{to_string(f.wrong)} +
                    (f.where == "kafka" ? " in Kafka" : " at consumer " + shown(f.where));
  if (f.id != 0) out += "  id " + std::to_string(f.id);
  if (!f.msg_id.empty()) out += "  msg_id " + f.msg_id;
  out += "  topic " + shown(f.topic);
  if (f.partition >= 0) out += "  partition " + std::to_string(f.partition);
  if (f.offset >= 0) out += "  offset " + std::to_string(f.offset);
  return out + "  " + shown(f.detail) + "\n";
}

std::string finding_json(const std::string& pipeline, const Finding& f) {
  return line({{"pipeline", pipeline},
               {"finding", to_string(f.wrong)},
               {"where", f.where},
               {"id", f.id != 0 ? json(f.id) : json()},
               {"msg_id", f.msg_id},
               {"topic", f.topic},
               {"partition", f.partition},
               {"offset", f.offset},
               {"detail", f.detail}});
}

std::string account_text(const std::string& pipeline, const Account& account) {
  std::string out = shown(pipeline) + "\nin the outbox\n";
  for (const auto& [status, count] : account.rows) out += counted(count, status);
  if (account.rows_are_deleted)
    out +=
        "  after_sent: delete keeps no row of what was sent: whether each message that was written is in "
        "Kafka cannot be known\n";
  out += side_text(account.kafka);
  for (const Side& side : account.consumers) out += side_text(side);
  std::string found;
  for (const Wrong w : all_wrongs)
    found += (found.empty() ? "" : ", ") + std::to_string(account.wrong(w)) + " " + std::string{to_string(w)};
  return out + found + "; " + std::to_string(account.unknown()) + " not known\n";
}

std::string account_json(const std::string& pipeline, const Account& account) {
  json out{{"pipeline", pipeline},
           {"rows", account.rows},
           {"rows_are_deleted", account.rows_are_deleted},
           {"kafka", side_json(account.kafka)},
           {"consumers", json::object()},
           {"unknown", account.unknown()}};
  for (const Side& side : account.consumers) out["consumers"][side.name] = side_json(side);
  for (const Wrong w : all_wrongs) out[std::string{to_string(w)}] = account.wrong(w);
  return line(out);
}

}  // namespace outbox::commands
