// A partition that does not answer stops nobody else, and what waited for it goes out in order.

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "relay/core/kafka/partitioner.hpp"
#include "tests/sim/world.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

constexpr Millis away_after{500};
constexpr Millis away_for{20'000};
constexpr std::int32_t away = 1;

struct Load {
  std::uint64_t seed = 1;
  int rows = 3000;
  Micros pause_max{2000};  ///< between rows
  std::optional<Millis>
      refused_at{};  ///< then Kafka refuses a message, and one a partition is sent at a time
  std::int32_t deferred_rows_max = 100'000;
};

// What a relay shows of itself, kept for longer than it lives.
struct Shown {
  relay::Health health;
  relay::Judgement judgement;
};
Shown shown(const relay::Pipeline& pipeline) {
  const relay::Figures figures = pipeline.figures(1);
  return {figures.health, figures.judgement};
}

// One relay, and partition 1 of three without a leader: its rows alone are far more than may be in flight.
class Straggling {
 public:
  explicit Straggling(const Load& load) : load_(load), chance_(load.seed) {
    kafka_.create("plain", 3).message_bytes_real = 1000;
    clock_.after(away_after, [this] { kafka_.partition_away_until[{"plain", away}] = back_at_; });
    if (load_.refused_at) clock_.after(*load_.refused_at, [this] { write_a_large_one(); });
    database_.on_marked = [this](const relay::SentRow& sent) {
      const auto took = clock_.now() - committed_.at(sent.id.value);
      marked_ += 1;
      if (sent.partition.value == away) return;
      longest_ = std::max(longest_, took);
      others_marked_ += 1;
    };
  }

  /// Runs until the partition is about to come back, then until all is over.
  void run() {
    relay::PipelineOptions options;
    options.name = options.owner = "straggling";
    options.limits.batch_rows = 100;
    options.limits.flat_rows = 50;
    options.limits.in_flight_rows = 400;
    options.published_max = 200;
    options.deferred_rows_max = load_.deferred_rows_max;
    const log::Logger logger(log::Level::info, log::Format::text,
                             [this](log::Level, const std::string& line) { log_.push_back(line); });
    relay::Pipeline pipeline(options, loop_, source_, broker_, logger);
    pipeline.start();
    write();
    clock_.run(back_at_ - Millis{1000});
    others_while_away_ = others_marked_;
    in_flight_ = pipeline.rows_in_flight();
    while_away_ = shown(pipeline);
    clock_.run(clock_.now() + Millis{30'000});
    in_the_end_ = shown(pipeline);
    dead_ = pipeline.counters().dead;
    loop_.kill();
  }

  [[nodiscard]] Millis longest() const { return std::chrono::duration_cast<Millis>(longest_); }
  [[nodiscard]] int marked() const { return marked_; }
  [[nodiscard]] int others_while_away() const { return others_while_away_; }
  [[nodiscard]] int of_others() const { return of_others_; }
  [[nodiscard]] std::int64_t in_flight() const { return in_flight_; }
  [[nodiscard]] std::int64_t dead() const { return dead_; }
  [[nodiscard]] const Shown& while_away() const { return while_away_; }
  [[nodiscard]] const Shown& in_the_end() const { return in_the_end_; }
  [[nodiscard]] std::ptrdiff_t said(std::string_view event) const {
    return std::ranges::count_if(
        log_, [&](const std::string& line) { return line.find(event) != std::string::npos; });
  }
  [[nodiscard]] bool in_order() {
    std::map<std::string, std::int64_t> last;
    for (const auto& [partition, log] : kafka_.find("plain")->logs)
      for (const KafkaRecord& record : log)
        if (std::exchange(last[*record.key], record.id.value) >= record.id.value) return false;
    return true;
  }

 private:
  void write() {
    if (written_++ == load_.rows) return;
    StoredRow row;
    row.topic = "plain";
    row.key = "k" + std::to_string(chance_.between(1, 50));
    row.shard =
        relay::Shard{static_cast<std::int16_t>(std::hash<std::string>{}(*row.key) % relay::shard_count)};
    row.created_at = clock_.wall();
    const relay::RowId id = database_.insert(row);
    database_.commit(id);
    committed_[id.value] = clock_.now();
    relay::Message message;
    message.key = *row.key;
    if (relay::partition_of(message, 3).value != away) of_others_ += 1;
    if (database_.asleep_until > clock_.now()) source_.notify();
    clock_.after(chance_.micros(0, load_.pause_max.count()), [this] { write(); });
  }
  // For a partition that answers, and of no key: it dies, and holds nobody.
  void write_a_large_one() {
    StoredRow row;
    row.topic = "plain";
    row.body = std::string(1500, 'x');
    row.created_at = clock_.wall();
    relay::Message message;
    do {
      row.msg_id.bytes[0] += 1;
      message.msg_id = row.msg_id;
    } while (relay::partition_of(message, 3).value == away);
    database_.commit(database_.insert(row));
    if (database_.asleep_until > clock_.now()) source_.notify();
  }

  Load load_;
  Chance chance_;
  SimClock clock_;
  MonoTime back_at_ = clock_.now() + away_for;
  FakeDatabase database_;
  FakeKafka kafka_;
  SimLoop loop_{clock_, Micros{40}};
  SourceFaults no_source_faults_;
  BrokerFaults no_broker_faults_;
  FakeSource source_{clock_, loop_, database_, chance_, no_source_faults_};
  FakeBroker broker_{clock_, loop_, kafka_, chance_, no_broker_faults_};
  std::map<std::int64_t, MonoTime> committed_;
  MonoTime::duration longest_{};
  int written_ = 0;
  int marked_ = 0;
  int others_marked_ = 0;
  int others_while_away_ = 0;
  int of_others_ = 0;
  std::int64_t in_flight_ = 0;
  std::int64_t dead_ = 0;
  Shown while_away_, in_the_end_;
  std::vector<std::string> log_;
};

}  // namespace

TEST_CASE(
    "a partition that does not answer stops nobody else for a second, what is in flight stays bounded, and "
    "its rows go out in order when it is back") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Straggling straggling({.seed = seed});
    straggling.run();
    INFO("seed ", seed);
    CHECK(straggling.others_while_away() == straggling.of_others());
    CHECK(straggling.longest() < Millis{1000});
    CHECK(straggling.in_flight() <= 400 + 200);  // the budget, and what the producer has of the one away
    CHECK(straggling.marked() == 3000);
    CHECK(straggling.in_order());
  }
}

// Carefully: one message a partition at a time. The partition goes away at 500 ms, with messages in flight.
TEST_CASE(
    "a partition that does not answer stops nobody else of a topic of which Kafka refused a message, "
    "either") {
  for (const Millis refused_at : {Millis{450}, Millis{2000}})
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      Straggling straggling(
          {.seed = seed, .rows = 800, .pause_max = Micros{30'000}, .refused_at = refused_at});
      straggling.run();
      INFO("seed ", seed, ", refused at ", refused_at.count(), " ms");
      CHECK(straggling.dead() == 1);
      CHECK(straggling.others_while_away() == straggling.of_others());
      CHECK(straggling.longest() < Millis{1000});
      CHECK(straggling.marked() == 800);
      CHECK(straggling.in_order());
    }
}

TEST_CASE(
    "where no more rows of a partition that does not answer can be set aside the others wait, which is said "
    "once and shown, and all goes on in order by itself when it is back") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Straggling straggling({.seed = seed, .deferred_rows_max = 100});
    straggling.run();
    INFO("seed ", seed);
    const Shown& full = straggling.while_away();
    CHECK(straggling.others_while_away() < straggling.of_others());
    CHECK(full.health.rows_deferred == 100);
    CHECK(full.health.deferred_full);
    CHECK(full.judgement.verdict == relay::Verdict::waiting);
    CHECK(full.judgement.reason.find("others wait as well") != std::string::npos);
    CHECK(straggling.in_flight() <= 400 + 200);
    CHECK(straggling.said("deferred_full") == 1);
    CHECK(straggling.said("deferred_room") == 1);
    CHECK(straggling.in_the_end().health.rows_deferred == 0);
    CHECK_FALSE(straggling.in_the_end().health.deferred_full);
    CHECK(is_well(straggling.in_the_end().judgement.verdict));
    CHECK(straggling.marked() == 3000);
    CHECK(straggling.in_order());
  }
}
