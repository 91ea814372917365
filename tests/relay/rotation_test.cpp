// Passwords and certificates change while the relay works: SIGHUP takes them over, and nothing is lost,
// doubled or turned round by it.

#include <doctest/doctest.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "tests/relay/rig.hpp"
#include "tests/support/certificates.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

std::string quoted(const std::string& text) {
  return "'" + text + "'";
}

std::size_t times(const std::string& text, const std::string& word) {
  std::size_t out = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++out;
  return out;
}

// Sends SIGHUP and waits until the relay has done `lines` once more.
void reload(RelayRig& rig, Process& relay, const std::string& line) {
  const std::size_t before = times(rig.logs(), line);
  relay.kill(SIGHUP);
  rig.await(line + " once more", [&] { return times(rig.logs(), line) > before; });
}

// Inserts 1, 2, 3 … under one key, ten a transaction, until it is told to stop; answers the last.
class Writer {
 public:
  Writer(RelayRig& rig, std::string topic)
      : uri_(rig.uri()), topic_(std::move(topic)), thread_([this] { write(); }) {}
  int stop() {
    stopping_ = true;
    thread_.join();
    return last_;
  }
  [[nodiscard]] int last() const { return last_; }

 private:
  void write() {
    auto sql = must(pg::Session::connect({.uri = uri_}));
    while (!stopping_) {
      ask(sql, "INSERT INTO outbox_msg (topic, msg_key, body) SELECT '" + topic_ + "', 'k', to_json(" +
                   std::to_string(last_) + " + n) FROM generate_series(1, 10) n");
      last_ += 10;
    }
  }

  std::string uri_;
  std::string topic_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> last_ = 0;
  std::thread thread_;
};

void check_in_order(KafkaCluster& kafka, const std::string& topic, int last) {
  std::vector<std::string> wanted;
  for (int n = 1; n <= last; ++n) wanted.push_back(std::to_string(n));
  CHECK(bodies_of(kafka.read_all(topic), "k") == wanted);
}

std::string logins(const std::vector<std::pair<std::string, std::string>>& users) {
  std::string out =
      "listener.name.sasl_ssl.plain.sasl.jaas.config="
      "org.apache.kafka.common.security.plain.PlainLoginModule required";
  for (const auto& [name, password] : users) out.append(" user_" + name + "=\"" + password + "\"");
  return out + ";";
}

}  // namespace

TEST_CASE("a new password of PostgreSQL is taken over at SIGHUP: nothing lost, nothing doubled") {
  const PostgresServer server({.host_auth = "scram-sha-256"});
  RelayRig rig({.server = server.local_uri()});
  const TemporaryDirectory secrets;
  const auto uri_with = [&](const std::string& password) {
    return "postgresql://postgres:" + password + "@127.0.0.1:" + std::to_string(server.port()) + "/" +
           rig.ask("SELECT current_database()");
  };
  rig.ask("ALTER ROLE postgres PASSWORD 'first-s3cr3t'");
  write_file(secrets / "uri", uri_with("first-s3cr3t") + "\n");
  rig.options().uri = "file:" + (secrets / "uri").string();
  const std::string topic = KafkaCluster::shared().new_topic("rotation");
  Process& relay = rig.start();
  Writer writer(rig, topic);
  rig.await("rows go out", [&] { return rig.count("SENT") != "0"; });

  rig.ask("ALTER ROLE postgres PASSWORD 'second-s3cr3t'");
  write_file(secrets / "uri", uri_with("second-s3cr3t") + "\n");
  reload(rig, relay, "reloaded");
  CHECK(rig.logs().find("pipelines[rig].postgres.uri") != std::string::npos);
  CHECK(rig.logs().find("needs_restart=0") != std::string::npos);
  const int written = writer.stop();
  rig.eventually_none_pending();
  // No connection is left that knows the first password only.
  rig.ask(
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'outboxd%'");
  rig.ask("INSERT INTO outbox_msg (topic, msg_key, body) VALUES ('" + topic + "', 'k', to_json(" +
          std::to_string(written + 1) + "))");
  rig.eventually_none_pending();
  check_in_order(KafkaCluster::shared(), topic, written + 1);

  write_file(secrets / "uri", uri_with("second-s3cr3t") + "_elsewhere\n");
  reload(rig, relay, "needs_restart option=pipelines[rig].postgres.uri");
  rig.ask(
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'outboxd%'");
  rig.ask("INSERT INTO outbox_msg (topic, msg_key, body) VALUES ('" + topic + "', 'k', to_json(" +
          std::to_string(written + 2) + "))");
  rig.eventually_none_pending();
  CHECK(rig.logs().find("s3cr3t") == std::string::npos);
}

TEST_CASE(
    "a new login of Kafka is taken over at SIGHUP under load: nothing lost, nothing doubled, in order") {
  KafkaCluster kafka({.settings = {logins({{"first", "first-s3cr3t"}, {"second", "second-s3cr3t"}})},
                      .script_options = {"--tls-sasl"}});
  if (!kafka.real()) return;
  const TemporaryDirectory secrets;
  const auto log_in = [&](const std::string& user) {
    write_file(secrets / "password", user + "-s3cr3t\n");
    return ", security.protocol: sasl_ssl, sasl.mechanism: PLAIN, sasl.username: " + user +
           ", ssl.ca.location: " + quoted(kafka.folder() + "/tls/ca.crt") +
           ", sasl.password: " + quoted("file:" + (secrets / "password").string());
  };
  const std::string topic = kafka.new_topic("rotation");
  RelayRig rig({.kafka = kafka.secure_bootstrap(), .properties = log_in("first")});
  Process& relay = rig.start();
  Writer writer(rig, topic);
  rig.await("rows go out", [&] { return rig.count("SENT") != "0"; });
  for (const std::string user : {"second", "first", "second", "first"}) {
    rig.options().properties = log_in(user);
    rig.write();
    reload(rig, relay, "kafka_credentials_renewed");
    const int seen = writer.last();
    rig.await("rows go out again", [&] {
      return std::stoi(rig.ask(
                 "SELECT coalesce(max(body::text::int), 0) FROM outbox_msg WHERE status = 'SENT'")) > seen;
    });
  }
  const int written = writer.stop();
  rig.eventually_none_pending();
  check_in_order(kafka, topic, written);

  // The broker forgets both: the relay waits, and the new login ends that.
  const std::string settings = kafka.folder() + "/node-1/server.properties";
  write_file(settings, read_file(settings) + "\n" + logins({{"third", "third-s3cr3t"}}) + "\n");
  kafka.kill();
  kafka.start();
  rig.ask("INSERT INTO outbox_msg (topic, msg_key, body) VALUES ('" + topic + "', 'k', to_json(" +
          std::to_string(written + 1) + "))");
  rig.await("the login is refused",
            [&] { return rig.logs().find("SASL authentication error") != std::string::npos; });
  rig.options().properties = log_in("third");
  rig.write();
  reload(rig, relay, "kafka_credentials_renewed");
  rig.eventually_none_pending();
  check_in_order(kafka, topic, written + 1);
  CHECK(rig.logs().find("s3cr3t") == std::string::npos);
}

TEST_CASE(
    "a client certificate that was renewed under its name is taken over at SIGHUP, and one that does not fit "
    "is refused") {
  const CertificateAuthority authority;
  const Certificate broker = authority.issue("broker", "IP:127.0.0.1");
  const Certificate nobody = authority.issue("nobody", "DNS:nobody");
  const Certificate granted = authority.issue("granted", "DNS:granted");
  const TemporaryDirectory folder;
  write_file(folder / "broker.pem", read_file(broker.key) + read_file(broker.certificate));
  KafkaCluster kafka(
      {.settings = {"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SSL",
                    "listener.name.sasl_ssl.ssl.client.auth=required",
                    "listener.name.sasl_ssl.ssl.keystore.location=" + (folder / "broker.pem").string(),
                    "listener.name.sasl_ssl.ssl.truststore.location=" + authority.certificate().string(),
                    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                    "super.users=User:ANONYMOUS;User:CN=granted"},
       .script_options = {"--tls-sasl"}});
  if (!kafka.real()) return;
  const std::string first = kafka.new_topic("rotation");
  const std::string second = kafka.new_topic("rotation");
  const auto use = [&](const Certificate& certificate, const Certificate& key) {
    write_file(folder / "client.crt", read_file(certificate.certificate));
    write_file(folder / "client.key", read_file(key.key));
  };
  use(nobody, nobody);
  RelayRig rig({.kafka = kafka.secure_bootstrap(),
                .properties =
                    ", security.protocol: ssl, ssl.ca.location: " + quoted(authority.certificate().string()) +
                    ", ssl.certificate.location: " + quoted((folder / "client.crt").string()) +
                    ", ssl.key.location: " + quoted((folder / "client.key").string())});
  rig.ask("INSERT INTO outbox_msg (topic, body) VALUES ('" + first + "', '1')");
  Process& relay = rig.start();
  rig.await("nobody may write", [&] { return rig.logs().find("topic_held") != std::string::npos; });
  reload(rig, relay, "reloaded");
  CHECK(rig.logs().find("kafka_credentials") == std::string::npos);  // nothing is new
  use(granted, nobody);
  reload(rig, relay, "kafka_credentials_refused");
  use(granted, granted);
  reload(rig, relay, "kafka_credentials_renewed");
  rig.ask("INSERT INTO outbox_msg (topic, body) VALUES ('" + second + "', '2')");
  rig.await("the renewed one may", [&] { return rig.count("SENT") != "0"; });
}
