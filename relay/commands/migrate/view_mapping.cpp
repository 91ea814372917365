#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "relay/commands/migrate/view.hpp"
#include "relay/core/message/topic_name.hpp"

namespace outbox::relay {
namespace {

constexpr std::string_view header_mark = "header:";
constexpr std::string_view text_mark = ":text";
constexpr std::string_view reserved_header = "outbox-";  // docs/protocol.md, headers
constexpr std::size_t headers_max = 50;                  // jsonb_build_object takes 100 arguments

// What the relay and the table write themselves.
constexpr std::array not_the_applications{"id",      "body_bytes",      "status",      "shard",
                                          "xact",    "generation",      "attempts",    "last_error",
                                          "sent_at", "kafka_partition", "kafka_offset"};
constexpr std::array may_be_text{"msg_id", "topic", "msg_key", "body", "headers"};

Error wrong(const std::string& what, const std::string& advice = {}) {
  return {Disposition::fatal, {}, what, advice};
}

std::size_t equals_sign(std::string_view text) {
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') quoted = !quoted;
    if (text[at] == '=' && !quoted) return at;
  }
  return std::string_view::npos;
}

bool reserved(std::string_view header) {
  return header.size() >= reserved_header.size() &&
         std::ranges::equal(header.substr(0, reserved_header.size()), reserved_header, [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
         });
}

Status check_column(const ViewColumn& column, BodyType body) {
  const auto fault = [&](const std::string& what, const std::string& advice = {}) {
    return failure(wrong("column \"" + column.name + "\" of the view: " + what, advice));
  };
  if (column.kind == ViewTarget::header) {
    if (column.target.empty()) return fault("the header has no name");
    if (reserved(column.target)) return fault("headers that begin with outbox- are the relay's");
    return {};
  }
  if (std::ranges::find(not_the_applications, column.target) != not_the_applications.end())
    return fault(column.target + " is outboxd's to write",
                 "add a column to the table for it, or send it as a header: " + column.name + "=header:…");
  if (column.type == ViewType::as_target) return {};
  if (std::ranges::find(may_be_text, column.target) == may_be_text.end())
    return fault("text could not be taken into " + column.target + " without guessing");
  if (column.target == "body" && body == BodyType::bytea)
    return fault("the table's body is bytea, which text cannot be", "leave :text out");
  return {};
}

// The names of columns, targets and headers, each once.
Status check_once(const View& view) {
  std::set<std::string> names;
  std::set<std::pair<ViewTarget, std::string>> targets;
  for (const ViewColumn& column : view.columns) {
    if (!names.insert(column.name).second)
      return failure(wrong("the view's column \"" + column.name + "\" is given twice"));
    if (!targets.emplace(column.kind, column.target).second)
      return failure(wrong("two columns of the view go to " + column.target));
  }
  return {};
}

bool has_target(const View& view, std::string_view target) {
  return std::ranges::any_of(view.columns, [&](const ViewColumn& column) {
    return column.kind == ViewTarget::column && column.target == target;
  });
}

}  // namespace

Result<ViewColumn> parse_view_column(std::string_view text) {
  const auto fault = [&](const std::string& why) {
    return failure(Disposition::fatal, "--column " + std::string(text) + ": " + why, {},
                   "as in id=msg_id, type=header:event-type, id:text=msg_id");
  };
  const std::size_t at = equals_sign(text);
  if (at == std::string_view::npos) return fault("no '='");
  std::string_view left = text.substr(0, at);
  const std::string_view right = text.substr(at + 1);
  ViewColumn column;
  if (left.ends_with(text_mark)) {
    column.type = ViewType::text;
    left.remove_suffix(text_mark.size());
  }
  auto name = pg::parse_name(left);
  if (!name) return fault(name.error().message);
  column.name = std::move(*name);
  if (right.starts_with(header_mark)) {
    column.kind = ViewTarget::header;
    column.target = right.substr(header_mark.size());
    return column;
  }
  auto target = pg::parse_name(right);
  if (!target) return fault(target.error().message);
  column.target = std::move(*target);
  return column;
}

Status check_view(const View& view, BodyType body) {
  for (const ViewColumn& column : view.columns) {
    if (Status fits = check_column(column, body); !fits) return fits;
  }
  if (Status once = check_once(view); !once) return once;
  const auto headers = std::ranges::count(view.columns, ViewTarget::header, &ViewColumn::kind);
  if (static_cast<std::size_t>(headers) > headers_max)
    return failure(wrong("more than " + std::to_string(headers_max) + " columns are headers"));
  if (!has_target(view, "body"))
    return failure(wrong("no column of the view is the body", "--column NAME=body"));
  if (!view.topic.empty()) {
    if (has_target(view, "topic"))
      return failure(wrong("--topic is for a view of which no column is the topic"));
    if (const auto fault = topic_name_fault(view.topic))
      return failure(wrong("--topic: " + std::string(*fault)));
  } else if (!has_target(view, "topic")) {
    return failure(wrong("no column of the view is the topic",
                         "--column NAME=topic, or --topic for one that all rows go to"));
  }
  return {};
}

}  // namespace outbox::relay
