#include "bench/poll_cost.hpp"

#include <array>
#include <chrono>
#include <future>

#include "relay/postgres/source_sql.hpp"

namespace bench {
namespace {

using namespace outbox;
using pg::Params;
using test::must;
using Clock = std::chrono::steady_clock;

constexpr int polls = 200;
constexpr int loaders = 2;

void load_sent(Stage& stage, const std::string& database, int rows) {
  pg::Session session = stage.session(database);
  must(session.exec("SET synchronous_commit = off"));
  Params params;
  params.i32(rows).i32(keys);
  must(
      session.exec("INSERT INTO public.outbox_msg (msg_id, topic, msg_key, body, status, sent_at, "
                   "kafka_partition, kafka_offset)"
                   " SELECT gen_random_uuid(), 'bench', 'key-' || i % $2, '{}', 'SENT', now(), i % 6, i"
                   "   FROM generate_series(0, $1::int - 1) i",
                   params));
}

constexpr std::array<std::int16_t, 1> first_shard{0};
constexpr std::array<std::int16_t, 1> last_shard{63};

/// The three statements of a claim with Look::flat, all shards wanted, as PostgresSource sends them.
class Poll {
 public:
  explicit Poll(pg::Session session) : session_(std::move(session)) {
    flat_.i16s(first_shard).i16s(last_shard);
    due_.i64(-1);
    for (Params* look : {&flat_, &due_}) look->i32(5000).i64(8 << 20).i64(0).null().text("public.outbox_msg");
    end_.boolean(true).text("public.outbox_msg");
  }

  double median_us() {
    std::vector<double> times;
    times.reserve(polls);
    for (int i = 0; i < polls; ++i) times.push_back(once());
    return quantile(std::move(times), 0.5);
  }

 private:
  double once() {
    double us = 0;
    must(session_.transaction([&](pg::Session& session) -> Status {
      must(session.exec_prepared(*sql_.settings, {}));
      const auto start = Clock::now();
      must(session.exec_prepared(*sql_.claim_flat, flat_));
      must(session.exec_prepared(*sql_.claim_due, due_));
      must(session.exec_prepared(*sql_.claim_end, end_));
      us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
      return {};
    }));
    return us;
  }

  pg::Session session_;
  Params flat_, due_, end_;
  relay::SourceSql sql_{{"public", "outbox_msg"}, relay::BodyColumn::json};
};

}  // namespace

void measure_poll_cost(Stage& stage, const Options& options, Figures& figures) {
  Figures::say("polls beside " + std::to_string(options.sent_rows) + " SENT rows");
  stage.make_database("none_sent");
  stage.make_database("many_sent");
  std::vector<std::future<void>> loading;
  loading.reserve(loaders);
  for (int i = 0; i < loaders; ++i) {
    loading.push_back(
        std::async(std::launch::async, [&] { load_sent(stage, "many_sent", options.sent_rows / loaders); }));
  }
  for (auto& loader : loading) loader.get();
  {
    Poll none(stage.session("none_sent"));
    Poll many(stage.session("many_sent"));
    for (int round = 0; round < options.rounds + 2; ++round) {
      figures.add("poll_empty_us", none.median_us());
      figures.add("poll_sent_rows_us", many.median_us());
    }
  }
  figures.add("sent_rows_poll_ratio", figures.median("poll_sent_rows_us") / figures.median("poll_empty_us"));
  stage.drop_database("none_sent");
  stage.drop_database("many_sent");
}

}  // namespace bench
