#include <nlohmann/json.hpp>

#include <cstdio>

#include "relay/commands/status/status.hpp"
#include "relay/log/line.hpp"

namespace outbox::commands {
namespace {

std::string with_commas(std::int64_t n) {
  std::string digits = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string seconds(Millis t) {
  char text[32];
  const double s = static_cast<double>(t.count()) / 1000.0;
  if (s < 120) {
    std::snprintf(text, sizeof text, "%.1fs", s);
  } else if (s < 7200) {
    std::snprintf(text, sizeof text, "%.0fm", s / 60);
  } else {
    std::snprintf(text, sizeof text, "%.1fh", s / 3600);
  }
  return text;
}

std::string shown(std::string_view text) {
  return log::text_value(text);
}

std::string counts_text(const Counts& c) {
  std::string out = "  pending " + with_commas(c.pending) + "  due " + with_commas(c.due) + "  scheduled " +
                    with_commas(c.scheduled) + "  held " + with_commas(c.held) + "  dead " +
                    with_commas(c.dead) + "  sent " + (c.sent_estimated ? "~" : "") + with_commas(c.sent);
  if (!c.sent_estimated)
    out += "  cancelled " + with_commas(c.cancelled) + "  discarded " + with_commas(c.discarded);
  return out + "\n";
}

bool same_lease(const LaneState& a, const LaneState& b) {
  return a.owner == b.owner && a.epoch == b.epoch;
}

// Neighbouring lanes of one owner and epoch in one line.
std::string lanes_text(const std::vector<LaneState>& lanes) {
  if (lanes.empty()) return "  lanes: never owned\n";
  std::string out;
  for (std::size_t i = 0; i < lanes.size();) {
    std::size_t end = i + 1;
    while (end < lanes.size() && same_lease(lanes[end], lanes[i])) ++end;
    const LaneState& lane = lanes[i];
    out += "  lanes " + std::to_string(lane.lane) + "-" + std::to_string(lanes[end - 1].lane) + "  epoch " +
           std::to_string(lane.epoch) + "  ";
    if (lane.owner.empty()) {
      out += "free\n";
    } else if (lane.remaining.count() <= 0) {
      out += "last owner " + shown(lane.owner) + ", its lease has run out, last renewed " +
             seconds(lane.renewed_ago) + " ago\n";
    } else {
      out += "owner " + shown(lane.owner) + ", renewed " + seconds(lane.renewed_ago) + " ago, " +
             seconds(lane.remaining) + " left\n";
    }
    i = end;
  }
  return out;
}

// "0-2,5" of the lanes whose lease of `owner` runs; "none".
std::string lanes_of(const std::vector<LaneState>& lanes, const std::string& owner) {
  const auto held = [&](std::size_t i) {
    return i < lanes.size() && lanes[i].owner == owner && lanes[i].remaining.count() > 0;
  };
  std::string out;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    if (!held(i)) continue;
    std::size_t last = i;
    while (held(last + 1)) ++last;
    out += (out.empty() ? "" : ",") + std::to_string(lanes[i].lane);
    if (last > i) out += "-" + std::to_string(lanes[last].lane);
    i = last;
  }
  return out.empty() ? "none" : out;
}

std::string instances_text(const StatusReport& report) {
  if (report.instances.empty()) return "";
  std::string out = "  instances " + std::to_string(report.instances.size()) + "  lanes " +
                    std::to_string(report.lanes.size()) + "  generation " +
                    std::to_string(report.lane_generation) + "\n";
  for (const InstanceState& instance : report.instances) {
    out += "    " + shown(instance.name) + "  lanes " + lanes_of(report.lanes, instance.name) + "  since " +
           seconds(instance.age) + ", renewed " + seconds(instance.renewed_ago) + " ago";
    if (instance.lanes_asked != std::ssize(report.lanes))
      out += ", asks for " + std::to_string(instance.lanes_asked) + " lanes";
    if (!instance.delivery.empty()) out += ", " + instance.delivery;
    out += "\n";
    if (!instance.stopped.empty()) out += "      stopped: " + shown(instance.stopped) + "\n";
  }
  return out;
}

std::string holds_text(const StatusReport& report) {
  if (report.holds.empty()) return "";
  std::string out = "  holds " + with_commas(report.holds_total) + "\n";
  for (const HoldState& h : report.holds) {
    out += "    " + h.scope + (h.scope == "pipeline" ? " paused" : " " + shown(h.topic));
    if (h.scope == "key") out += " key " + shown(h.key);
    out += "  since " + seconds(h.age) + "  " + shown(h.reason) + "\n";
  }
  const auto more = report.holds_total - static_cast<std::int64_t>(report.holds.size());
  return more > 0 ? out + "    and " + with_commas(more) + " more\n" : out;
}

std::string horizon_text(const std::optional<HorizonHolder>& holder) {
  if (!holder || (holder->open && *holder->open < relay::holder_shown_after)) return "";
  std::string out = "  dead rows stay for " + holder->kind + " " + shown(holder->name);
  if (!holder->state.empty()) out += ", " + holder->state;
  if (holder->open) out += ", open for " + seconds(*holder->open);
  return out + ", " + with_commas(holder->transactions) + " transactions back\n";
}

nlohmann::json horizon_json(const std::optional<HorizonHolder>& holder) {
  if (!holder) return {};
  return {{"kind", holder->kind},
          {"name", holder->name},
          {"transactions", holder->transactions},
          {"open_ms", holder->open ? nlohmann::json(holder->open->count()) : nlohmann::json()},
          {"state", holder->state}};
}

nlohmann::json lane_json(const LaneState& lane) {
  return {{"lane", lane.lane},
          {"owner", lane.owner.empty() ? nlohmann::json() : nlohmann::json(lane.owner)},
          {"epoch", lane.epoch},
          {"renewed_ago_ms", lane.renewed_ago.count()},
          {"remaining_ms", lane.remaining.count()}};
}

nlohmann::json instance_json(const InstanceState& instance, const std::vector<LaneState>& lanes) {
  nlohmann::json out{{"name", instance.name},
                     {"lanes", nlohmann::json::array()},
                     {"lanes_asked", instance.lanes_asked},
                     {"age_ms", instance.age.count()},
                     {"renewed_ago_ms", instance.renewed_ago.count()},
                     {"delivery", instance.delivery},
                     {"stopped", instance.stopped}};
  for (const LaneState& lane : lanes)
    if (lane.owner == instance.name && lane.remaining.count() > 0) out["lanes"].push_back(lane.lane);
  return out;
}

nlohmann::json hold_json(const HoldState& hold) {
  nlohmann::json out{
      {"scope", hold.scope}, {"topic", hold.topic}, {"reason", hold.reason}, {"age_ms", hold.age.count()}};
  if (hold.scope == "key") out["key"] = hold.key;
  return out;
}

nlohmann::json counts_json(const Counts& c) {
  nlohmann::json out{
      {"pending", c.pending}, {"due", c.due},   {"scheduled", c.scheduled},          {"held", c.held},
      {"dead", c.dead},       {"sent", c.sent}, {"sent_estimated", c.sent_estimated}};
  if (!c.sent_estimated) {
    out["cancelled"] = c.cancelled;
    out["discarded"] = c.discarded;
  }
  return out;
}

}  // namespace

std::string status_text(const std::string& name, const StatusReport& report) {
  char rate[32];
  std::snprintf(rate, sizeof rate, "%.1f/s", report.sent_per_s());
  return shown(name) + "\n" + counts_text(report.counts) + "  oldest waiting " +
         (report.oldest ? seconds(*report.oldest) : "none") + "  sent " + rate + "\n" +
         lanes_text(report.lanes) + instances_text(report) + holds_text(report) +
         horizon_text(report.horizon);
}

std::string status_json(const std::string& name, const StatusReport& report) {
  nlohmann::json out{
      {"pipeline", name},
      {"counts", counts_json(report.counts)},
      {"oldest_waiting_ms", report.oldest ? nlohmann::json(report.oldest->count()) : nlohmann::json()},
      {"sent_per_s", report.sent_per_s()},
      {"lanes", nlohmann::json::array()},
      {"lane_generation", report.lane_generation},
      {"instances", nlohmann::json::array()},
      {"holds", nlohmann::json::array()},
      {"holds_total", report.holds_total},
      {"horizon", horizon_json(report.horizon)},
      {"server", report.server}};
  for (const LaneState& lane : report.lanes) out["lanes"].push_back(lane_json(lane));
  for (const InstanceState& instance : report.instances)
    out["instances"].push_back(instance_json(instance, report.lanes));
  for (const HoldState& hold : report.holds) out["holds"].push_back(hold_json(hold));
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace outbox::commands
