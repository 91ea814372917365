// A consumer's options from a file.

#include "outbox/config.hpp"

#include <doctest/doctest.h>

#include "consumer/config/options.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

const std::string smallest = R"(service: { port: 8080 }
consumer:
  name: ledger
  postgres: postgresql:///bank
  topics: [transfers, refunds]
  kafka: { bootstrap.servers: "127.0.0.1:9092" }
)";

/// The faults of the smallest file with one more line in its section.
std::string faults(const std::string& line, const std::string& yaml = smallest) {
  try {
    static_cast<void>(parse_consumer_options(yaml + "  " + line + "\n"));
    return "none";
  } catch (const ConfigError& e) {
    return e.what();
  }
}

bool says(const std::string& text, std::string_view what) {
  return text.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("the smallest file gives ConsumerOptions' own defaults, and Consumer accepts them") {
  const auto options = parse_consumer_options(smallest);
  CHECK(options.name == "ledger");
  CHECK(options.postgres == "postgresql:///bank");
  CHECK(options.topics == std::vector<std::string>{"transfers", "refunds"});
  CHECK(options.kafka == std::map<std::string, std::string>{{"bootstrap.servers", "127.0.0.1:9092"}});
  CHECK_FALSE(options.id_of);
  CHECK_NOTHROW(Consumer{options});
}

TEST_CASE("the table's defaults are those of ConsumerOptions, and a value at either bound is stored") {
  for (const auto& option : config::consumer_options()) {
    const auto& facts = option.facts;
    CAPTURE(std::string(facts.path));
    ConsumerOptions options;
    if (!facts.required)
      CHECK(config::format_value(facts.kind, option.load(options), facts.choices) == facts.fallback);
    if (facts.kind == config::Kind::text) continue;
    std::vector<std::string_view> values{facts.lowest, facts.highest};
    if (!facts.choices.empty()) values = config::split_choices(facts.choices);
    for (const auto value : values) {
      const auto parsed = config::parse_value(facts.kind, value, facts.choices);
      REQUIRE(parsed.has_value());
      option.store(options, *parsed);
      CHECK(option.load(options) == *parsed);
    }
  }
}

TEST_CASE("every option of the file arrives, the lists and the horizon without an end among them") {
  const auto options = parse_consumer_options(smallest + R"(  schema: Ledger
  workers: 4
  order: key
  after_attempts: dead_letter
  guard: by_seq
  horizon: forever
  horizon_check: unchecked
  batch_bytes_max: 1MiB
  drain_timeout: 2s
  maintain_interval: 0s
  id_from_json: ["/merchant", "/order/number"]
)");
  CHECK(options.schema == "Ledger");
  CHECK(options.workers == 4);
  CHECK(options.order == Order::key);
  CHECK(options.after_attempts == AfterAttempts::dead_letter);
  CHECK(options.guard == Guard::by_seq);
  CHECK(options.horizon == forever);
  CHECK(options.horizon_check == HorizonCheck::unchecked);
  CHECK(options.batch_bytes_max == 1 << 20);
  CHECK(options.drain_timeout == std::chrono::seconds{2});
  CHECK(options.maintain_interval.count() == 0);
  REQUIRE(options.id_of);
  CHECK(options.id_of({.topic = "orders", .body = R"({"merchant":"m","order":{"number":1}})"}) ==
        "[\"m\",1]");
}

TEST_CASE("what is unknown is refused at its place, with what was meant") {
  CHECK(faults("wokers: 2") ==
        "consumer.yaml:7:3: consumer.wokers: is not an option here; did you mean `workers`?");
  CHECK(says(faults("order: keys"), "did you mean key?"));
  CHECK(says(faults("horizon: 1h"), "2d to 36500d, or forever"));
  CHECK(says(faults("horizon: for_ever"), "is not a duration"));
  CHECK(says(faults("workers: 65"), "1 to 64"));
  CHECK(says(faults("topics: transfers", "consumer:\n"),
             "consumer.topics: must be a list, such as [transfers]"));
  CHECK(says(faults("id_from_json: [merchant]"), "no JSON pointer"));
  CHECK(says(faults("backoff_max: 1ms"), "is less than backoff_initial"));
  CHECK(says(faults("buffer_bytes_max: 1MiB"), "is less than batch_bytes_max"));
}

TEST_CASE("of librdkafka's properties the unknown, the wrong and those that break the promise are refused") {
  const auto with = [](const std::string& property) {
    return faults("kafka: { bootstrap.servers: x, " + property + " }",
                  "consumer:\n  name: n\n  postgres: p\n  topics: [t]\n");
  };
  CHECK(with("security.protocol: SASL_SSL, sasl.mechanism: PLAIN") == "none");
  CHECK(says(
      with("sesion.timeout.ms: 6000"),
      "consumer.kafka.sesion.timeout.ms: is no property of librdkafka; did you mean `session.timeout.ms`?"));
  CHECK(says(with("session.timeout.ms: soon"), "has a value that librdkafka does not take"));
  CHECK(says(with("enable.auto.commit: true"), "consumer.kafka.enable.auto.commit: refused, since"));
  CHECK(says(faults("", "consumer:\n  name: n\n  postgres: p\n  topics: [t]\n"),
             "consumer.kafka.bootstrap.servers: is missing"));
}

TEST_CASE("all faults are named at once, and what is missing is") {
  const auto all = faults("order: x", "consumer:\n  workers: 0\n");
  for (const auto* one :
       {"consumer.name: is missing", "consumer.postgres: is missing", "consumer.topics: is missing",
        "consumer.workers: ", "consumer.order: ", "kafka.bootstrap.servers: is missing"})
    CHECK(says(all, one));
  CHECK(says(faults("", "service: 1\n#"), "consumer: is missing: the options stand below `consumer:`"));
  CHECK(says(faults("", "consumer: 1\n#"), "consumer: must be a mapping"));
  CHECK_THROWS_WITH_AS(static_cast<void>(load_consumer_options("no/such/file")),
                       doctest::Contains("no/such/file: cannot be read: No such file"), ConfigError);
}

TEST_CASE("secrets come from files and variables, and never stand in a fault") {
  const TemporaryDirectory folder("consumer-config");
  const std::string secret = folder / "password", file = folder / "ledger.yaml";
  write_file(secret, "hush\n");
  write_file(file, smallest.substr(0, smallest.find("  kafka:")) +
                       "  kafka: { bootstrap.servers: x, sasl.password: \"file:" + secret + "\" }\n");
  CHECK(load_consumer_options(file).kafka.at("sasl.password") == "hush");
  const auto said =
      faults("kafka: { bootstrap.servers: x, ssl.key.password: hush, session.timeout.ms: hush }",
             "consumer:\n  name: n\n  postgres: \"hush${NO_SUCH_VARIABLE}\"\n  topics: [t]\n");
  CHECK(says(said, "NO_SUCH_VARIABLE"));
  CHECK_FALSE(says(said, "hush$"));
}
