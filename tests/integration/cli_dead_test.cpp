// `outboxd dead`: an operator looks at dead messages and decides about them.

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <sstream>

#include "cli.hpp"
#include "sql_fixture.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Two dead rows of key k with two held behind them, one dead of another topic, one dead without a key.
struct Graveyard : OutboxDatabase {
  Graveyard() : folder(one_pipeline(uri())) {
    with_roles();
    ask(sql(),
        "INSERT INTO outbox_msg (topic, msg_key, body, status, last_error, created_at) VALUES "
        "('t', 'k', '\"secret\"', 'DEAD', E'Too Large\\nby far', now() - interval '2 hours'), "
        "('t', 'k', '2', 'DEAD', 'header outbox-id', now() - interval '1 hour'), "
        "('t', 'k', '3', 'HELD', NULL, now()), ('t', 'k', '4', 'HELD', NULL, now()), "
        "('u', 'k', '5', 'DEAD', 'too large', now()), ('t', NULL, '6', 'DEAD', 'invalid', now()), "
        "('t', 'other', '7', 'PENDING', NULL, now())");
    ask(sql(),
        "INSERT INTO outbox_hold (source, scope, cause, topic, msg_key) VALUES ('public.outbox_msg', 'key', "
        "'dead', 't', "
        "'k')");
  }
  [[nodiscard]] Finished dead(std::vector<std::string> args) const {
    args.insert(args.begin(), "dead");
    return folder.outboxd(std::move(args));
  }
  // The ids that a list has, in its order.
  [[nodiscard]] std::string listed(std::vector<std::string> args) const {
    args.insert(args.begin(), {"list", "--json"});
    const auto done = dead(std::move(args));
    REQUIRE_MESSAGE(done.status.code == 0, done.errors);
    std::string ids;
    std::istringstream lines(done.output);
    for (std::string line; std::getline(lines, line);)
      ids += (ids.empty() ? "" : " ") + std::to_string(nlohmann::json::parse(line)["id"].get<int>());
    return ids;
  }
  std::string states() { return ask(sql(), "SELECT id, status FROM outbox_msg ORDER BY id"); }

  CliFolder folder;
};

const std::string untouched = "1|DEAD 2|DEAD 3|HELD 4|HELD 5|DEAD 6|DEAD 7|PENDING";

}  // namespace

TEST_CASE("dead list shows what is dead and why, by topic and key, and each filter narrows it") {
  const Graveyard burials;
  CHECK(burials.listed({}) == "1 2 6 5");
  CHECK(burials.listed({"--id", "2,5,7"}) == "2 5");
  CHECK(burials.listed({"--topic", "u"}) == "5");
  CHECK(burials.listed({"--key", "k"}) == "1 2 5");
  CHECK(burials.listed({"--reason", "TOO large"}) == "1 5");
  CHECK(burials.listed({"--key", "k", "--topic", "t", "--reason", "large"}) == "1");
  CHECK(burials.listed({"--until", "now"}).starts_with("1 2"));
  CHECK(burials.listed({"--since", "2000-01-01T00:00:00Z", "--until", "2001-01-01"}).empty());
  CHECK(burials.listed({"--limit", "2"}) == "1 2");
  const auto text = burials.dead({"list", "--limit", "1"}).output;
  CHECK_MESSAGE(has(text, "payments: 4 dead\n  id 1  topic t  key k  written "), text);
  CHECK(has(text, R"("Too Large\nby far")"));
  CHECK(has(text, "  and 3 more\n"));
  CHECK_FALSE(has(text, "secret"));
  CHECK(burials.dead({"list", "--since", "no time"}).status.code != 0);
}

TEST_CASE("dead show tells what waits behind a message, and its body only where it is asked for") {
  const Graveyard burials;
  const auto text = burials.dead({"show", "1"});
  CHECK(text.status.code == 0);
  CHECK_MESSAGE(has(text.output, "2 rows wait behind it"), text.output);
  CHECK_FALSE(has(text.output, "secret"));
  const auto json = nlohmann::json::parse(burials.dead({"show", "1", "--json", "--body"}).output);
  CHECK(json["body"] == "\"secret\"");
  CHECK(json["held_behind"] == 2);
  CHECK(json["reason"] == "Too Large\nby far");
  CHECK(json["headers"] == nlohmann::json::object());
  const auto none = burials.dead({"show", "7"});
  CHECK(none.status.code == 1);
  CHECK(has(none.errors, "no message 7 is dead"));
}

TEST_CASE("a decision needs to say about which messages, and a dry run changes nothing") {
  Graveyard burials;
  CHECK(burials.dead({"retry"}).status.code == 2);
  CHECK(burials.dead({"discard", "--because", "x"}).status.code == 2);
  CHECK(burials.dead({"discard", "--all"}).status.code == 2);
  CHECK(burials.dead({"discard", "--all", "--because", ""}).status.code == 2);
  const auto dry = burials.dead({"retry", "--key", "k", "--dry-run"});
  CHECK(dry.status.code == 0);
  CHECK(has(dry.output, "payments: 3 dead"));
  CHECK(burials.dead({"discard", "--all", "--because", "x", "--dry-run"}).status.code == 0);
  CHECK(burials.states() == untouched);
  const auto nothing = burials.dead({"retry", "--id", "7"});
  CHECK(nothing.status.code == 1);
  CHECK(has(nothing.errors, "no dead message meets the filter"));
}

TEST_CASE("a key is released with the last of its dead messages, as a higher generation") {
  Graveyard burials;
  CHECK(burials.dead({"retry", "--id", "1"}).output == "payments: 1 retried\n");
  CHECK(burials.states() == "1|PENDING 2|DEAD 3|HELD 4|HELD 5|DEAD 6|DEAD 7|PENDING");
  CHECK(burials.dead({"retry", "--topic", "t", "--key", "k"}).output == "payments: 1 retried\n");
  CHECK(burials.states() == "1|PENDING 2|PENDING 3|PENDING 4|PENDING 5|DEAD 6|DEAD 7|PENDING");
  CHECK(ask(burials.sql(), "SELECT string_agg(generation::text, ' ' ORDER BY id) FROM outbox_msg") ==
        "1 1 0 0 0 0 0");
  CHECK(burials.dead({"retry", "--all"}).output == "payments: 2 retried\n");
  CHECK(burials.dead({"retry", "--all"}).output == "payments: 0 retried\n");
}

TEST_CASE("what is discarded keeps the reason, and who did it") {
  Graveyard burials;
  const auto done =
      burials.dead({"discard", "--key", "k", "--topic", "t", "--because", "paid by hand, case 7"});
  CHECK(done.output == "payments: 2 discarded\n");
  CHECK(burials.states() == "1|DISCARDED 2|DISCARDED 3|PENDING 4|PENDING 5|DEAD 6|DEAD 7|PENDING");
  const std::string kept = ask(burials.sql(), "SELECT last_error FROM outbox_msg WHERE id = 1");
  CHECK_MESSAGE(has(kept, "discarded by "), kept);
  CHECK(has(kept, ": paid by hand, case 7 ("));
  CHECK(has(kept, "Too Large"));
}

TEST_CASE("an operator's role is enough, and the relay's is not") {
  Graveyard burials;
  ask(burials.sql(), "DROP ROLE IF EXISTS anna_keeps");
  ask(burials.sql(), "CREATE ROLE anna_keeps LOGIN IN ROLE outbox_operator");
  const auto as = [&](const std::string& role, std::vector<std::string> args) {
    args.insert(args.end(), {"--uri", with_database(burials.uri(),
                                                    ask(burials.sql(), "SELECT current_database()"), role)});
    return burials.dead(std::move(args));
  };
  CHECK(as("anna_keeps", {"list"}).status.code == 0);
  CHECK(as("anna_keeps", {"show", "1"}).status.code == 0);
  CHECK(as("anna_keeps", {"retry", "--id", "5"}).status.code == 0);
  CHECK(as("anna_keeps", {"discard", "--id", "6", "--because", "x"}).status.code == 0);
  CHECK(has(ask(burials.sql(), "SELECT last_error FROM outbox_msg WHERE id = 6"),
            "discarded by anna_keeps: x"));
  const auto refused = as("outbox_relay", {"retry", "--id", "1"});
  CHECK(refused.status.code == 4);
  CHECK(has(refused.errors, "42501"));
  ask(burials.sql(), "DROP ROLE anna_keeps");
}

TEST_CASE("with several pipelines a list goes through all, and a decision needs to name one") {
  const Graveyard burials;
  const std::string second = "  - name: other\n    postgres: { uri: \"" + burials.uri() +
                             "\" }\n    source: { table: elsewhere.outbox_msg }\n    kafka: { "
                             "bootstrap.servers: \"127.0.0.1:9\" }\n";
  burials.folder.write("outboxd.yaml", one_pipeline(burials.uri()) + second);
  CHECK(has(burials.dead({"list"}).output, "payments: 4 dead"));
  CHECK(burials.dead({"list"}).status.code == 4);  // the second one's table is missing
  CHECK(burials.dead({"retry", "--all"}).status.code == 2);
  CHECK(burials.dead({"retry", "--id", "6", "--pipeline", "payments"}).status.code == 0);
}
