#include "tests/support/kafka/cluster.hpp"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <stdexcept>

#include "tests/support/kafka/handles.hpp"
#include "tests/support/services.hpp"

namespace outbox::test {
namespace {

using Mock = Owned<rd_kafka_mock_cluster_t, rd_kafka_mock_cluster_destroy>;

// Set by CMake: the script in the source tree.
constexpr const char* script = OUTBOX_TEST_KAFKA_SCRIPT;
constexpr const char* fetch_script = OUTBOX_TEST_LIBRDKAFKA_SCRIPT;

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return out + "'";
}

struct Ran {
  int status = 0;
  std::string out;
};

Ran run_line(const std::string& line) {
  std::FILE* pipe = ::popen(line.c_str(), "re");
  if (pipe == nullptr) throw std::runtime_error("kafka: cannot run " + line);
  Ran ran;
  std::array<char, 4096> piece{};
  while (const auto size = std::fread(piece.data(), 1, piece.size(), pipe))
    ran.out.append(piece.data(), size);
  ran.status = ::pclose(pipe);
  while (!ran.out.empty() && ran.out.back() == '\n') ran.out.pop_back();
  return ran;
}

// The quick compiler alone halves a broker's start; a benchmark starts its brokers otherwise.
Ran run_script(const std::vector<std::string>& words) {
  std::string line =
      "KAFKA_CLUSTER_JVM_OPTS=\"${KAFKA_CLUSTER_JVM_OPTS--XX:TieredStopAtLevel=1}\" " + quoted(script);
  for (const auto& word : words) line += " " + quoted(word);
  return run_line(line);
}

std::string run_or_throw(const std::vector<std::string>& words) {
  auto ran = run_script(words);
  if (ran.status != 0) throw std::runtime_error("kafka: kafka-cluster " + words.front() + " failed");
  return std::move(ran.out);
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool real_can_be_had() {
  if (std::system("java -version >/dev/null 2>&1") != 0 && !is_set("JAVA_HOME")) return false;
  return run_script({"fetch"}).status == 0;
}

std::string temporary_folder() {
  auto name = (std::filesystem::temp_directory_path() / "outbox-kafka-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("kafka: cannot make a temporary folder");
  return name;
}

}  // namespace

struct KafkaCluster::State {
  KafkaKind kind = KafkaKind::real;
  std::string bootstrap;
  std::string folder;  // of a real cluster of our own
  pid_t owner = ::getpid();
  Client mock_client;  // outlives the mock cluster inside it
  Mock mock;
  Client client;

  void start_real(const KafkaOptions& options);
  void start_mock(int brokers);
  rd_kafka_t* connected();
  void node(const char* command, int number) {
    run_or_throw({command, "--dir", folder, std::to_string(number)});
  }
};

void KafkaCluster::State::start_real(const KafkaOptions& options) {
  kind = KafkaKind::real;
  folder = temporary_folder() + "/kafka";
  std::vector<std::string> words{
      "up", "--dir", folder, "--port", "0", "--brokers", std::to_string(options.brokers)};
  for (const auto& setting : options.settings) words.insert(words.end(), {"-o", setting});
  words.insert(words.end(), options.script_options.begin(), options.script_options.end());
  bootstrap = run_or_throw(words);
}

void KafkaCluster::State::start_mock(int brokers) {
  kind = KafkaKind::mock;
  mock_client = make_client(RD_KAFKA_PRODUCER, {});
  mock.reset(rd_kafka_mock_cluster_new(mock_client.get(), brokers));
  bootstrap = rd_kafka_mock_cluster_bootstraps(mock.get());
}

rd_kafka_t* KafkaCluster::State::connected() {
  if (!client) client = make_client(RD_KAFKA_PRODUCER, {{"bootstrap.servers", bootstrap}});
  return client.get();
}

KafkaCluster::KafkaCluster(KafkaOptions options) : state_(std::make_unique<State>()) {
  if (options.kind == KafkaKind::mock) {
    state_->start_mock(options.brokers);
  } else if (options.kind == KafkaKind::external) {
    state_->kind = KafkaKind::external;
    state_->bootstrap = service_address("OUTBOX_TEST_KAFKA").value();
  } else if (real_can_be_had()) {
    state_->start_real(options);
  } else if (is_set("OUTBOX_REQUIRE_REAL_KAFKA")) {
    throw std::runtime_error("kafka: OUTBOX_REQUIRE_REAL_KAFKA is set, but Java 17 or Maven is missing");
  } else {
    std::fputs(
        "\n*** NOT A REAL KAFKA: Java 17 or Maven is missing, so this runs on librdkafka's mock cluster. "
        "***\n"
        "*** What only a real broker shows stays untested. Install both, or name one in OUTBOX_TEST_KAFKA. "
        "***\n\n",
        stderr);
    state_->start_mock(options.brokers);
  }
}

KafkaCluster::~KafkaCluster() {
  state_->client.reset();
  if (state_->folder.empty() || state_->owner != ::getpid()) return;
  run_script({"down", "--dir", state_->folder, "--now", "--purge"});
  std::error_code ignored;
  std::filesystem::remove_all(std::filesystem::path{state_->folder}.parent_path(), ignored);
}

// A mock cluster of another process makes topics of one size only, so this process takes one of its own.
KafkaCluster& KafkaCluster::shared() {
  static KafkaCluster cluster{[] {
    KafkaOptions options;
    if (service_address("OUTBOX_TEST_KAFKA")) options.kind = KafkaKind::external;
    if (service_address("OUTBOX_TEST_KAFKA_KIND") == "mock") options.kind = KafkaKind::mock;
    return options;
  }()};
  return cluster;
}

const std::string& KafkaCluster::bootstrap() const {
  return state_->bootstrap;
}
std::string KafkaCluster::secure_bootstrap() const {
  return run_or_throw({"bootstrap", "--sasl", "--dir", state_->folder});
}
KafkaKind KafkaCluster::kind() const {
  return state_->kind;
}
const std::string& KafkaCluster::folder() const {
  return state_->folder;
}

std::string KafkaCluster::unique_topic(std::string_view prefix) {
  static std::mt19937_64 random{std::random_device{}()};
  std::array<char, 17> suffix{};
  std::snprintf(suffix.data(), suffix.size(), "%016llx", static_cast<unsigned long long>(random()));
  return std::string{prefix} + "." + suffix.data();
}

void KafkaCluster::create_topic(const std::string& name, int partitions, const Configs& configs) {
  if (state_->kind != KafkaKind::mock)
    return test::create_topic(state_->connected(), name, partitions, configs);
  const auto error = rd_kafka_mock_topic_create(state_->mock.get(), name.c_str(), partitions, 1);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw std::runtime_error("kafka: mock: " + name + ": " + rd_kafka_err2str(error));
}

std::string KafkaCluster::new_topic(std::string_view prefix, int partitions, const Configs& configs) {
  auto name = unique_topic(prefix);
  create_topic(name, partitions, configs);
  return name;
}

void KafkaCluster::add_partitions(const std::string& name, int partitions) {
  test::add_partitions(state_->connected(), name, partitions);
}

void KafkaCluster::delete_topic(const std::string& name) {
  test::delete_topic(state_->connected(), name);
}

std::vector<KafkaRecord> KafkaCluster::read_all(const std::string& topic, Isolation isolation) {
  return test::read_all(state_->bootstrap, topic, isolation);
}

void KafkaCluster::kill(int node) {
  if (state_->mock) {
    rd_kafka_mock_broker_set_down(state_->mock.get(), node);
  } else {
    state_->node("kill", node);
  }
}

void KafkaCluster::start(int node) {
  if (state_->mock) {
    rd_kafka_mock_broker_set_up(state_->mock.get(), node);
  } else {
    state_->node("start", node);
  }
}

void KafkaCluster::pause(int node) {
  state_->node("pause", node);
}
void KafkaCluster::resume(int node) {
  state_->node("resume", node);
}

std::string KafkaCluster::run_tool(const std::vector<std::string>& words) {
  std::vector<std::string> all{"tool", "--dir", state_->folder};
  all.insert(all.end(), words.begin(), words.end());
  return run_or_throw(all);
}

void KafkaCluster::fail_requests(std::int16_t api_key, const std::vector<int>& errors) {
  if (!state_->mock) throw std::runtime_error("kafka: only a mock cluster fails requests on demand");
  std::vector<rd_kafka_resp_err_t> codes;
  for (const int error : errors) codes.push_back(static_cast<rd_kafka_resp_err_t>(error));
  rd_kafka_mock_push_request_errors_array(state_->mock.get(), api_key, codes.size(), codes.data());
}

std::optional<std::string> current_librdkafka() {
  Ran ran = run_line(quoted(fetch_script));
  if (ran.status == 0) return std::move(ran.out);
  if (is_set("OUTBOX_REQUIRE_REAL_KAFKA"))
    throw std::runtime_error("kafka: OUTBOX_REQUIRE_REAL_KAFKA is set, and no current librdkafka can be had");
  std::fputs("\n*** NO CURRENT LIBRDKAFKA: pip cannot download it. What needs it is NOT TESTED. ***\n\n",
             stderr);
  return std::nullopt;
}

std::optional<std::string> KafkaRecord::header(std::string_view name) const {
  const auto found = std::ranges::find_if(headers, [&](const auto& header) { return header.first == name; });
  return found == headers.end() ? std::nullopt : found->second;
}

}  // namespace outbox::test
