#include <doctest/doctest.h>

#include <csignal>
#include <fstream>
#include <iterator>

#include "tests/relay/rig.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

const std::string postgres_secret = "pg-s3cr3t-4711";
const std::string kafka_secret = "kafka-s3cr3t-0815";

std::string proc(pid_t pid, const std::string& what) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/" + what, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void keeps(const std::string& where, const std::string& text) {
  CAPTURE(where);
  CHECK(text.find(postgres_secret) == std::string::npos);
  CHECK(text.find(kafka_secret) == std::string::npos);
}

}  // namespace

TEST_CASE(
    "secrets from files are in no line that the process prints, in no page, and not in its environment") {
  const TemporaryDirectory secrets("outbox-secrets");
  RelayRig rig({.admin = std::string{admin_socket}});
  std::string uri = rig.uri();
  uri.insert(uri.find('@'), ":" + postgres_secret);
  write_file(secrets / "uri", uri + "\n");
  write_file(secrets / "password", kafka_secret + "\n");
  rig.options().uri = "file:" + (secrets / "uri").string();
  // The broker's listener speaks no SASL: librdkafka has a lot to say about that.
  rig.options().properties =
      ", security.protocol: sasl_plaintext, sasl.mechanism: PLAIN, sasl.username: relay, sasl.password: "
      "'file:" +
      (secrets / "password").string() + "', debug: 'security,broker'";
  rig.options().process = "log: { level: debug }\n";
  Process& relay = rig.start();
  rig.await("Kafka refuses it", [&] { return rig.logs().find("kafka_down") != std::string::npos; });
  rig.await("it shows itself", [&] { return rig.logs().find("admin_listening") != std::string::npos; });
  for (const char* target : {"/", "/status", "/metrics", "/readyz"}) keeps(target, rig.shown(target).body);
  keeps("environ", proc(relay.pid(), "environ"));
  keeps("cmdline", proc(relay.pid(), "cmdline"));
  relay.kill(SIGHUP);
  rig.await("it reads its file again", [&] { return rig.logs().find("reloaded") != std::string::npos; });
  write_file(secrets / "uri", "postgresql://x:" + postgres_secret + "@[bad");
  relay.kill(SIGHUP);
  rig.await("the bad uri is refused", [&] { return rig.logs().find("reload_refused") != std::string::npos; });
  relay.kill(SIGTERM);
  CHECK(relay.wait().code == 0);
  CHECK(rig.logs().size() > 2000);  // it did print
  keeps("the log", rig.logs());
}
