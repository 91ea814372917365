// What a row says stays in its place, wherever the relay and its commands show it.

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "tests/relay/rig.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

// Of what may stand in a terminal or a log: whole lines of printable text.
bool tame(const std::string& text) {
  return std::ranges::none_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n') || byte == 0x7f;
  });
}

bool forges_a_line(const std::string& text) {
  return text.starts_with("forged") || text.find("\nforged") != std::string::npos;
}

}  // namespace

TEST_CASE(
    "a hostile topic, key, header and reason start no line and move no cursor, in log, commands, status and "
    "metrics") {
  RelayRig rig({.admin = std::string{admin_socket}});
  const std::string topic = KafkaCluster::shared().new_topic("hostile");
  const std::string bad =
      "\nforged level=error\r\x1b[2J\x1b]0;owned\x07\"},{\"pipelines\":[]} 1\nforged_total 1\n";
  const auto insert = [&](const std::string& to, const std::string& key, const std::string& headers) {
    rig.ask("INSERT INTO outbox_msg (topic, msg_key, headers, body) VALUES ($1, $2, $3::jsonb, '1')",
            pg::Params{}.text(to).text(key).text(headers));
  };
  insert("t" + bad, "k", "{}");                                         // no topic can have that name
  insert(topic, "k" + bad, nlohmann::json{{"outbox-id", bad}}.dump());  // forges a header of the relay's
  insert(topic, "fine", nlohmann::json{{"h" + bad, "v" + bad}}.dump());
  rig.start();
  rig.await("one is held, one dies, one goes out", [&] {
    return rig.count("DEAD") == "1" && rig.count("SENT") == "1" &&
           rig.logs().find("topic_held") != std::string::npos;
  });
  rig.await("it is surveyed",
            [&] { return rig.shown("/status").body.find("\"dead\":1") != std::string::npos; });

  const std::string status = rig.shown("/status").body;
  CHECK(nlohmann::json::parse(status)["pipelines"].size() == 1);
  CHECK(tame(status));
  const std::string metrics = rig.shown("/metrics").body;
  const std::string list = rig.outboxd({"dead", "list"}).output;
  CHECK(!list.empty());
  for (const std::string& text : {rig.logs(), metrics, list, rig.outboxd({"status"}).output}) {
    CAPTURE(text);
    CHECK(tame(text));
    CHECK(!forges_a_line(text));
    CHECK(text.size() > 50);
  }
}
