// A broker that wants TLS and a login.

#include <doctest/doctest.h>

#include <fstream>
#include <mutex>

#include "kafka_letters.hpp"
#include "outbox/config.hpp"
#include "service_database.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

/// The cluster's own client.conf as a consumer's file, its password in a file of its own.
ConsumerOptions options_for(const KafkaCluster& kafka, const TemporaryDirectory& folder,
                            const std::string& uri, const std::string& topic) {
  std::string yaml =
      "consumer:\n  name: " + topic + "\n  postgres: \"" + uri + "\"\n  topics: [" + topic + "]\n  kafka:\n";
  std::ifstream client(kafka.folder() + "/client.conf");
  for (std::string line; std::getline(client, line);) {
    const auto equals = line.find('=');
    const auto property = line.substr(0, equals);
    auto value = line.substr(equals + 1);
    if (property == "sasl.password") {
      write_file(folder / "password", value + "\n");
      value = "file:" + (folder / "password").string();
    }
    yaml += "    " + property + ": \"" + value + "\"\n";
  }
  auto options = parse_consumer_options(yaml);
  options.log = [](std::string_view) {};
  return options;
}

}  // namespace

TEST_CASE("over TLS with a login, from a file: messages are applied, and offsets and retention are told") {
  if (!KafkaCluster::shared().real()) return;
  KafkaCluster kafka({.script_options = {"--tls-sasl"}});
  const auto topic = kafka.new_topic("secret", 1, {{"retention.ms", "3600000"}, {"segment.ms", "3600000"}});
  send(kafka.bootstrap(), topic, {letter(v7(1)), letter(v7(2)), letter(v7(1))});
  ServiceDatabase db;
  const TemporaryDirectory folder("login");
  auto options = options_for(kafka, folder, db.database.uri(), topic);
  REQUIRE(options.kafka.at("security.protocol") == "SASL_SSL");
  {
    RunningConsumer consumer(options, record_effect);
    eventually(
        "both are applied", [&] { return db.effects() == 2; }, Millis{40'000});
    eventually("the offset passed", [&] { return committed(kafka.bootstrap(), topic, topic, 0) == 3; });
    consumer.stop();
    CHECK(consumer.error().empty());
    CHECK(consumer.counters().duplicate == 1);
  }

  // A wrong password, and a broker whose certificate nobody vouches for: waited for, with the reason.
  for (const auto& [property, value, reason] : {std::tuple{"sasl.password", "hush-hush", "uthentication"},
                                                std::tuple{"ssl.ca.location", "", "certificate"}}) {
    CAPTURE(std::string(property));
    std::mutex mutex;
    std::string log;
    auto wrong = options;
    wrong.kafka[property] = value;
    wrong.log = [&](std::string_view line) {
      const std::lock_guard lock(mutex);
      log.append(line).append("\n");
    };
    RunningConsumer consumer(wrong, record_effect);
    eventually(
        "the reason is said",
        [&] {
          const std::lock_guard lock(mutex);
          return log.find("kafka_away") != std::string::npos && log.find(reason) != std::string::npos;
        },
        Millis{40'000});
    CHECK_FALSE(consumer.ended());
    CHECK(log.find("hush-hush") == std::string::npos);
  }
}
