// Messages of producers that send no id in a header: the service reads one from the business's own words.

#include <doctest/doctest.h>

#include <stdexcept>

#include "consumer/core/envelope.hpp"
#include "letters.hpp"
#include "outbox/inbox.hpp"
#include "service_database.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

std::string named(const Letter& letter, const IdOf& id_of) {
  const auto read = read_envelope(letter.record(), id_of);
  if (const auto* wrong = std::get_if<Malformed>(&read)) return wrong->reason;
  return to_string(std::get<Message::Identity>(read).msg_id);
}

IdOf always(const std::string& name) {
  return [name](const Record&) { return std::optional(name); };
}

Letter order(const std::string& merchant, const std::string& number, const std::string& rest = "",
             std::int64_t offset = 0) {
  return {.topic = "orders",
          .offset = offset,
          .key = merchant,
          .body = R"({"merchant":")" + merchant + R"(","order":{"number":)" + number + "}" + rest + "}"};
}

const IdOf business_key = id_from_json({"/merchant", "/order/number"});

}  // namespace

TEST_CASE("what the service reads decides behind outbox-id, before ce_id and id, and only where it answers") {
  const auto name = to_string(foreign_id(Letter{}.topic, "order-1"));
  CHECK(named({.headers = {}}, always("order-1")) == name);
  CHECK(named({.headers = {{"outbox-id", v7(1)}}}, always("order-1")) == v7(1));
  CHECK(named({.headers = {{"ce_id", v7(2)}, {"id", v7(3)}}}, always("order-1")) == name);
  CHECK(named({.headers = {{"id", v7(3)}}}, [](const Record&) { return std::nullopt; }) == v7(3));
  CHECK(named({.headers = {}}, always(v7(4))) == v7(4));
}

TEST_CASE("a name that can't be one makes its record malformed, with the reason") {
  CHECK(named({.headers = {}}, always("")).find("empty name") != std::string::npos);
  CHECK(named({.headers = {}}, always("\xff")).find("no UTF-8") != std::string::npos);
  CHECK(named({.headers = {}}, always(std::string(1025, 'x'))).find("1,024") != std::string::npos);
  CHECK(named({.headers = {}}, [](const Record&) { return std::nullopt; }).find("answers nothing") !=
        std::string::npos);
  const IdOf throws = [](const Record&) -> std::optional<std::string> { throw std::runtime_error("oh"); };
  CHECK(named({.headers = {}}, throws) == "id_of failed: oh");
}

TEST_CASE("merchant and order number by JSON pointers: one name each, never two for one or one for two") {
  const auto id = [](const Letter& letter) { return business_key(letter.record()).value_or("none"); };
  CHECK(id(order("m1", "4711")) == "[\"m1\",4711]");
  CHECK(id(order("m1", "4711", R"(,"cents":1)")) == id(order("m1", "4711")));
  CHECK(id(order("m1", "\"4711\"")) != id(order("m1", "4711")));
  CHECK(id(order("m1\\u0022,4", "711")) != id(order("m1", "4711")));
  auto elsewhere = order("m1", "4711");
  elsewhere.topic = "refunds";
  CHECK(named(elsewhere, business_key) != named(order("m1", "4711"), business_key));
  CHECK(id(order("m1", "18446744073709551615")) != id(order("m1", "18446744073709551614")));
  for (const auto* odd : {"null", "1.0", "18446744073709551616", "[1]", "{}"})
    CHECK(id(order("m1", odd)) == "none");
  CHECK(id({.body = "no json"}) == "none");
  CHECK(id({.body = std::nullopt}) == "none");
  CHECK(id({.body = R"({"merchant":"m1"})"}) == "none");
  CHECK_THROWS_AS(static_cast<void>(id_from_json({"merchant"})), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(id_from_json({})), std::invalid_argument);
}

TEST_CASE(
    "a foreign message named by its business key: one effect, a conflict for another body, a retry works") {
  ServiceDatabase db;
  auto options = db.inbox();
  options.id_of = business_key;
  Inbox inbox(options);
  const Handler broken = [](Transaction&, const Message&) { throw Reject("no such merchant"); };
  CHECK(inbox.process(order("m1", "1", "", 0).record(), record_effect).fate == Fate::applied);
  const auto batch = std::vector{order("m1", "1", "", 1), order("m1", "1", R"(,"cents":2)", 2),
                                 order("m1", "2", "", 3), order("m2", "null", "", 4)};
  const auto outcomes = inbox.process(records(batch), record_effect);
  CHECK(outcomes[0].verdict == Verdict::duplicate);
  CHECK(outcomes[1].verdict == Verdict::conflict);
  CHECK(outcomes[2].fate == Fate::applied);
  CHECK(outcomes[3].verdict == Verdict::malformed);
  CHECK(db.effects() == 2);
  CHECK(inbox.process(order("m1", "3", "", 5).record(), broken).fate == Fate::dead);
  must(db.session.exec("SELECT inbox_dead_retry(id) FROM dead_msgs WHERE verdict = 'rejected'"));
  CHECK(fates(inbox.retry_dead(record_effect)) == std::vector{Fate::applied});
  CHECK(inbox.process(order("m1", "3", "", 6).record(), record_effect).verdict == Verdict::duplicate);
}
