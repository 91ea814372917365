#pragma once
// A Kafka for tests. A test asks for the shared one, or for a cluster of its own whose brokers it may kill
// and freeze.
//
// The shared one is, in this order: the cluster that OUTBOX_TEST_KAFKA names (HOST:PORT,…; services.hpp); a
// real single broker in a temporary folder, started by tests/support/kafka/kafka-cluster and stopped with the
// process; where no Java or Maven can be had, librdkafka's mock cluster inside this process, which says so on
// standard error. With OUTBOX_REQUIRE_REAL_KAFKA=1 that last step is an error. Everything here blocks and
// throws std::runtime_error: a time-out is an error, never "nothing there". One thread at a time.

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outbox::test {

struct KafkaRecord {
  std::optional<std::string> key;  ///< null and empty are told apart
  std::optional<std::string> body;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;  ///< in the record's order
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::chrono::sys_time<std::chrono::milliseconds> timestamp;

  /// The first header of that name; nullopt if there is none or it is null.
  [[nodiscard]] std::optional<std::string> header(std::string_view name) const;
};

enum class KafkaKind { external, real, mock };
enum class Isolation { read_uncommitted, read_committed };

struct KafkaOptions {
  int brokers = 1;
  std::vector<std::string> settings{};        ///< of the brokers, "key=value"; ignored by a mock
  std::vector<std::string> script_options{};  ///< further options of `kafka-cluster up`, such as "--tls-sasl"
  KafkaKind kind = KafkaKind::real;           ///< real or mock
};

class KafkaCluster {
 public:
  using Configs = std::map<std::string, std::string>;

  /// A cluster of the test's own. Blocks: 3 s for one broker, 10 s for three.
  explicit KafkaCluster(KafkaOptions options = {});
  ~KafkaCluster();
  KafkaCluster(const KafkaCluster&) = delete;
  KafkaCluster& operator=(const KafkaCluster&) = delete;

  /// The one that every test of this process may use, made at the first call: use unique_topic() in it.
  static KafkaCluster& shared();

  [[nodiscard]] const std::string& bootstrap() const;
  /// Of a real cluster made with "--tls-sasl": the listener for that. Its CA is folder()/tls/ca.crt.
  [[nodiscard]] std::string secure_bootstrap() const;
  [[nodiscard]] KafkaKind kind() const;
  /// True for a real broker, by whomever it was started.
  [[nodiscard]] bool real() const { return kind() != KafkaKind::mock; }
  /// Where a cluster of the test's own keeps its state, such as client.conf; empty for the others.
  [[nodiscard]] const std::string& folder() const;

  /// `prefix` and something that no other test run has.
  [[nodiscard]] static std::string unique_topic(std::string_view prefix);
  /// Returns when every partition has a leader. Configs as Kafka names them; a mock ignores them.
  void create_topic(const std::string& name, int partitions = 1, const Configs& configs = {});
  /// create_topic(unique_topic(prefix), …), and its name.
  std::string new_topic(std::string_view prefix, int partitions = 1, const Configs& configs = {});
  /// Raises the count; waits until it is seen. Not on a mock.
  void add_partitions(const std::string& name, int partitions);
  void delete_topic(const std::string& name);

  /// Every record up to the high watermarks found at the call, ordered by partition and offset.
  [[nodiscard]] std::vector<KafkaRecord> read_all(const std::string& topic,
                                                  Isolation isolation = Isolation::read_uncommitted);

  /// Faults, for a cluster of the test's own. Nodes are numbered from 1; with several brokers 0 is the
  /// controller.
  void kill(int node = 1);    ///< SIGKILL (a mock: the broker's port closes)
  void start(int node = 1);   ///< with its data, as after a crash; waits until it is ready
  void pause(int node = 1);   ///< SIGSTOP: connections stay open, nothing answers; not on a mock
  void resume(int node = 1);  ///< SIGCONT
  /// A Kafka tool as `kafka-cluster tool` runs it, {"acls", "--add", …}; not on a mock. Returns what it
  /// printed.
  std::string run_tool(const std::vector<std::string>& words);
  /// A mock only: the next requests of that kind are answered with these errors, by the protocol's numbers.
  void fail_requests(std::int16_t api_key, const std::vector<int>& errors);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The folder of a current librdkafka.so.1, for a program's LD_LIBRARY_PATH: Debian 12's cannot log in by
/// SCRAM to Kafka 4. Downloaded once. nullopt where it can't be had, which it says on standard error; an
/// error with OUTBOX_REQUIRE_REAL_KAFKA=1.
[[nodiscard]] std::optional<std::string> current_librdkafka();

}  // namespace outbox::test
