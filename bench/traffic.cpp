#include "bench/traffic.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "bench/reader.hpp"
#include "tests/support/eventually.hpp"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;
using Times = std::vector<std::atomic<std::int64_t>>;  // nanoseconds of Clock, 0: not yet

// Enough that a commit's flush never holds back the rate; PostgreSQL flushes for several at once.
constexpr int writers = 8;

std::int64_t now() {
  return nanoseconds(Clock::now().time_since_epoch()).count();
}

struct Stream {
  Stage& stage;
  const TrafficOptions& options;
  const TrafficHooks& hooks;
  int rows;
  Clock::time_point start;
  std::vector<std::string> bodies;  // a producer may read one until it is acknowledged
  Times committed, received;
  std::atomic<int> received_count{0};
};

void write(Stream& stream, outbox::pg::Session session, int first) {
  const nanoseconds pace{1'000'000'000 / stream.options.rate};
  for (int i = first; i < stream.rows; i += writers) {
    const auto at = static_cast<std::size_t>(i);
    const std::string key = "key-" + std::to_string(i % keys);
    outbox::pg::Params params;
    params.text(stream.options.topic).text(key).untyped(stream.bodies[at]);
    std::this_thread::sleep_until(stream.start + i * pace);
    outbox::test::must(session.exec_prepared(
        "INSERT INTO public.outbox_msg (topic, msg_key, body) VALUES ($1, $2, $3)", params));
    stream.committed[at] = now();
    if (stream.hooks.committed) stream.hooks.committed(i % keys % partitions, stream.bodies[at]);
  }
}

void read(Stream& stream, Reader& reader, const std::atomic<bool>& stop) {
  while (!stop) {
    reader.poll(50, [&](std::string_view body) {
      const std::int64_t at = now();
      auto& received = stream.received[static_cast<std::size_t>(number_in(body))];
      if (received != 0) return;  // a repeat
      received = at;
      ++stream.received_count;
    });
  }
}

TrafficSeen seen_of(const Stream& stream) {
  const auto warm =
      static_cast<std::size_t>(stream.options.rate) * static_cast<std::size_t>(stream.options.warm_s);
  TrafficSeen seen;
  for (std::size_t i = warm; i < stream.bodies.size(); ++i) {
    if (stream.received[i] == 0) {
      ++seen.missing;
      continue;
    }
    // The message can be there before the writer's thread runs again: that is no time at all.
    seen.latency_ms.push_back(
        std::max(0.0, static_cast<double>(stream.received[i] - stream.committed[i]) / 1e6));
  }
  return seen;
}

}  // namespace

TrafficSeen run_traffic(Stage& stage, const TrafficOptions& options, const TrafficHooks& hooks) {
  const int rows = options.rate * (options.warm_s + options.counted_s);
  const auto size = static_cast<std::size_t>(rows);
  Stream stream{stage, options, hooks, rows, {}, {}, Times(size), Times(size)};
  stream.bodies.reserve(size);
  for (int i = 0; i < rows; ++i) stream.bodies.push_back(body_of(i));
  Reader reader(stage.kafka().bootstrap(), options.topic);
  reader.assign();
  std::vector<outbox::pg::Session> sessions;
  sessions.reserve(writers);
  for (int i = 0; i < writers; ++i) sessions.push_back(stage.session(options.database));

  std::atomic<bool> stop{false};
  stream.start = Clock::now() + std::chrono::milliseconds{500};
  auto reading = std::async(std::launch::async, [&] { read(stream, reader, stop); });
  std::vector<std::future<void>> writing;
  writing.reserve(writers);
  for (int i = 0; i < writers; ++i) {
    writing.push_back(std::async(
        std::launch::async, [&, i] { write(stream, std::move(sessions[static_cast<std::size_t>(i)]), i); }));
  }
  std::this_thread::sleep_until(stream.start + std::chrono::seconds{options.warm_s});
  if (hooks.warm) hooks.warm();
  for (auto& writer : writing) writer.get();
  const double seconds = std::chrono::duration<double>(Clock::now() - stream.start).count();
  if (hooks.over) hooks.over();
  static_cast<void>(outbox::test::happens_within(outbox::Millis{10'000},
                                                 [&] { return stream.received_count >= stream.rows; }));
  stop = true;
  reading.get();
  TrafficSeen seen = seen_of(stream);
  seen.rows_per_s = rows / seconds;
  return seen;
}

}  // namespace bench
