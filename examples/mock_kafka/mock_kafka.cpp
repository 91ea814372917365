// outbox-mock-kafka: librdkafka's mock cluster as a program, for demos and tests without a Kafka.
//
// It prints the bootstrap servers as its first line, and lives until it gets SIGTERM or SIGINT, or until its
// standard input closes, where that is a pipe: so it ends with whoever started it. It keeps about 5 MB a
// partition and drops older records in silence, and knows no CreateTopics: topics not named here are made
// with four partitions when asked for.

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::string_view usage =
    "Usage: outbox-mock-kafka [--brokers N] [--topic NAME:PARTITIONS]...\n"
    "  --brokers N               1 to 9 (1)\n"
    "  --topic NAME:PARTITIONS   make this topic; may be repeated\n";

struct Topic {
  std::string name;
  int partitions = 1;
};
struct Options {
  int brokers = 1;
  std::vector<Topic> topics;
};

std::optional<int> number(std::string_view text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most)
    return std::nullopt;
  return value;
}

std::optional<Topic> topic(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const auto partitions = number(text.substr(colon + 1), 1, 1000);
  if (!partitions) return std::nullopt;
  return Topic{std::string{text.substr(0, colon)}, *partitions};
}

std::optional<Options> parse(int count, char** words) {
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view option = words[i];
    if (option == "--brokers") {
      const auto brokers = number(words[i + 1], 1, 9);
      if (!brokers) return std::nullopt;
      options.brokers = *brokers;
    } else if (option == "--topic") {
      auto made = topic(words[i + 1]);
      if (!made) return std::nullopt;
      options.topics.push_back(std::move(*made));
    } else {
      return std::nullopt;
    }
  }
  if (count % 2 == 0) return std::nullopt;  // an option without its value
  return options;
}

// Blocks until the end is asked for.
void await_end(int signals) {
  struct stat input {};
  const bool watched =
      ::fstat(STDIN_FILENO, &input) == 0 && (S_ISFIFO(input.st_mode) || S_ISSOCK(input.st_mode));
  std::array<pollfd, 2> fds{pollfd{signals, POLLIN, 0}, pollfd{watched ? STDIN_FILENO : -1, POLLIN, 0}};
  for (;;) {
    if (::poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[0].revents != 0) return;
    std::array<char, 256> ignored{};
    if (fds[1].revents != 0 && ::read(STDIN_FILENO, ignored.data(), ignored.size()) <= 0) return;
  }
}

using Client = std::unique_ptr<rd_kafka_t, decltype([](rd_kafka_t* p) noexcept { rd_kafka_destroy(p); })>;
using Cluster =
    std::unique_ptr<rd_kafka_mock_cluster_t,
                    decltype([](rd_kafka_mock_cluster_t* p) noexcept { rd_kafka_mock_cluster_destroy(p); })>;

int fail(const char* what) {
  std::fprintf(stderr, "outbox-mock-kafka: %s\n", what);
  return 1;
}

}  // namespace

int main(int count, char** words) {
  const auto options = parse(count, words);
  if (!options) {
    std::fputs(usage.data(), stderr);
    return 2;
  }
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGTERM);
  sigaddset(&wanted, SIGINT);
  sigprocmask(SIG_BLOCK, &wanted, nullptr);  // before librdkafka makes threads
  const int signals = ::signalfd(-1, &wanted, SFD_CLOEXEC);

  std::array<char, 512> text{};
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  rd_kafka_conf_set(conf, "log_level", "3", nullptr, 0);
  const Client client{rd_kafka_new(RD_KAFKA_PRODUCER, conf, text.data(), text.size())};
  if (!client) return fail(text.data());
  const Cluster cluster{rd_kafka_mock_cluster_new(client.get(), options->brokers)};
  if (!cluster) return fail("the mock cluster did not start");
  for (const auto& [name, partitions] : options->topics) {
    const auto error = rd_kafka_mock_topic_create(cluster.get(), name.c_str(), partitions, 1);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return fail((name + ": " + rd_kafka_err2str(error)).c_str());
  }
  std::printf("%s\n", rd_kafka_mock_cluster_bootstraps(cluster.get()));
  std::fflush(stdout);
  await_end(signals);
  return 0;
}
