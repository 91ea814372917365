// Kafka over TLS, with passwords and certificates, and with access control, on a real broker: the relay gets
// through where it may, says what is wrong where it may not, and loses nothing meanwhile.

#include <doctest/doctest.h>

#include "tests/relay/rig.hpp"
#include "tests/support/certificates.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

const std::string user = "outbox";
const std::string password = "outbox-s3cr3t-4711";

// A broker with a TLS + SASL listener; `settings` are the broker's.
KafkaCluster secure_kafka(std::vector<std::string> settings = {}) {
  return KafkaCluster{
      {.settings = std::move(settings), .script_options = {"--tls-sasl", "--user", user + ":" + password}}};
}

std::string quoted(const std::string& text) {
  return "'" + text + "'";
}

std::string trusting(const std::string& authority) {
  return ", ssl.ca.location: " + quoted(authority);
}

std::string trusting(const KafkaCluster& kafka) {
  return trusting(kafka.folder() + "/tls/ca.crt");
}

std::string logging_in(const std::string& mechanism, const std::string& with) {
  return ", security.protocol: sasl_ssl, sasl.mechanism: " + mechanism + ", sasl.username: " + user +
         ", sasl.password: " + quoted(with);
}

RigOptions by_the_secure_listener(const KafkaCluster& kafka, const std::string& properties) {
  RigOptions options;
  options.kafka = kafka.secure_bootstrap();
  options.properties = properties;
  return options;
}

void insert(RelayRig& rig, const std::string& topic, int count = 20) {
  rig.ask("INSERT INTO outbox_msg (topic, msg_key, body) SELECT '" + topic +
          "', 'k', to_json(n) FROM generate_series(1, " + std::to_string(count) + ") n");
}

std::vector<std::string> numbers(int count) {
  std::vector<std::string> out;
  for (int n = 1; n <= count; ++n) out.push_back(std::to_string(n));
  return out;
}

// Until Kafka is told to be away, with the reason.
void await_refusal(RelayRig& rig, const std::string& reason) {
  rig.await("the relay says that Kafka is away: " + reason, [&] {
    const std::string logs = rig.logs();
    const auto down = logs.find("kafka_down");
    return down != std::string::npos && logs.find(reason) != std::string::npos;
  });
  CHECK(rig.logs().find(password) == std::string::npos);
  CHECK(rig.count("DEAD") == "0");
}

}  // namespace

TEST_CASE("Kafka over TLS with a password: the right one gets through, and what is wrong is named") {
  auto kafka = secure_kafka();
  if (!kafka.real()) return;
  const std::string topic = kafka.new_topic("payments", 2);
  {
    RelayRig rig(by_the_secure_listener(kafka, trusting(kafka) + logging_in("PLAIN", password)));
    insert(rig, topic);
    rig.start();
    rig.eventually_none_pending();
    CHECK(bodies_of(kafka.read_all(topic), "k") == numbers(20));
    CHECK(rig.outboxd({"check"}).output.find("authentication") == std::string::npos);
  }
  {
    RelayRig rig(by_the_secure_listener(kafka, trusting(kafka) + logging_in("PLAIN", "wrong-s3cr3t")));
    insert(rig, topic);
    rig.start();
    await_refusal(rig, "SASL authentication error");
    CHECK(rig.logs().find("wrong-s3cr3t") == std::string::npos);
    const Finished check = rig.outboxd({"check"});
    CHECK(check.output.find("SASL authentication error") != std::string::npos);
    CHECK((check.output + check.errors).find("wrong-s3cr3t") == std::string::npos);
  }
  {
    const CertificateAuthority stranger("another CA");
    RelayRig rig(by_the_secure_listener(
        kafka, trusting(stranger.certificate().string()) + logging_in("PLAIN", password)));
    insert(rig, topic);
    rig.start();
    await_refusal(rig, "certificate verify failed");
  }
  CHECK(kafka.read_all(topic).size() == 20);  // of the first relay
}

TEST_CASE("Kafka over TLS: a broker whose certificate is for another host is refused") {
  const CertificateAuthority authority;
  const Certificate other = authority.issue("elsewhere", "DNS:kafka.example");
  const TemporaryDirectory folder;
  write_file(folder / "elsewhere.pem", read_file(other.key) + read_file(other.certificate));
  auto kafka =
      secure_kafka({"listener.name.sasl_ssl.ssl.keystore.location=" + (folder / "elsewhere.pem").string()});
  if (!kafka.real()) return;
  const std::string topic = kafka.new_topic("payments");
  const std::string properties = trusting(authority.certificate().string()) + logging_in("PLAIN", password);
  RelayRig rig(by_the_secure_listener(kafka, properties));
  insert(rig, topic);
  rig.start();
  await_refusal(rig, "verify failed");
  // By the name alone: without that check the same certificate would do.
  RelayRig careless(
      by_the_secure_listener(kafka, properties + ", ssl.endpoint.identification.algorithm: none"));
  insert(careless, topic);
  careless.start();
  careless.eventually_none_pending();
}

TEST_CASE("Kafka by SCRAM, with a current librdkafka, and one that cannot says so") {
  auto kafka = secure_kafka();
  const auto library = current_librdkafka();
  if (!kafka.real() || !library) return;
  const std::string topic = kafka.new_topic("payments");
  for (const std::string mechanism : {"SCRAM-SHA-256", "SCRAM-SHA-512"}) {
    CAPTURE(mechanism);
    RigOptions options = by_the_secure_listener(kafka, trusting(kafka) + logging_in(mechanism, password));
    options.env = {{"LD_LIBRARY_PATH", *library}};
    RelayRig rig(options);
    insert(rig, topic);
    rig.start();
    rig.eventually_none_pending();
  }
  CHECK(kafka.read_all(topic).size() == 40);
  RigOptions options =
      by_the_secure_listener(kafka, trusting(kafka) + logging_in("SCRAM-SHA-512", "wrong-s3cr3t"));
  options.env = {{"LD_LIBRARY_PATH", *library}};
  RelayRig rig(options);
  insert(rig, topic);
  rig.start();
  await_refusal(rig, "SASL authentication error");
  CHECK(rig.logs().find("wrong-s3cr3t") == std::string::npos);
}

TEST_CASE(
    "Kafka by client certificates and access control: a topic that the relay may not write waits, and no "
    "other") {
  auto kafka =
      secure_kafka({"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SSL",
                    "listener.name.sasl_ssl.ssl.client.auth=required",
                    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                    "super.users=User:ANONYMOUS"});
  if (!kafka.real()) return;
  const std::string granted = kafka.new_topic("granted");
  const std::string refused = kafka.new_topic("refused");
  const auto grant = [&](const std::string& topic) {
    kafka.run_tool({"acls", "--add", "--allow-principal", "User:CN=kafka-cluster client", "--operation",
                    "Write", "--operation", "Describe", "--operation", "DescribeConfigs", "--topic", topic});
  };
  grant(granted);
  const std::string tls = trusting(kafka) + ", security.protocol: ssl";
  const std::string certificate =
      ", ssl.certificate.location: " + quoted(kafka.folder() + "/tls/client.crt") +
      ", ssl.key.location: " + quoted(kafka.folder() + "/tls/client.key");
  {
    RelayRig nobody(by_the_secure_listener(kafka, tls));
    insert(nobody, granted);
    nobody.start();
    await_refusal(nobody, "SSL");
  }
  RelayRig rig(by_the_secure_listener(kafka, tls + certificate));
  insert(rig, refused);
  insert(rig, granted);
  rig.start();
  rig.await("the topic is held", [&] { return rig.logs().find("topic_held") != std::string::npos; });
  rig.await("the other goes out", [&] { return rig.count("SENT") == "20"; });
  CHECK(rig.count("DEAD") == "0");
  grant(refused);
  rig.await(
      "what waited goes out", [&] { return rig.count("SENT") == "40"; }, Millis{60'000});
  CHECK(bodies_of(kafka.read_all(granted), "k") == numbers(20));
  CHECK(bodies_of(kafka.read_all(refused), "k") == numbers(20));
}
