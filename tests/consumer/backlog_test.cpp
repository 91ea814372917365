#include "consumer/core/backlog.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "letters.hpp"

using namespace outbox;
using namespace outbox::test;

namespace {

const PartitionId p0{"transfers", 0}, p1{"transfers", 1};
const MonoTime start{};
const Outcome done{.fate = Fate::applied};
const Outcome failed{.fate = Fate::failed, .reason = "no"};
const Outcome waiting{.fate = Fate::waiting, .reason = "away"};

Fetched at(std::int32_t partition, std::int64_t offset, std::size_t bytes = 10) {
  return fetched(
      {.partition = partition, .offset = offset, .key = std::nullopt, .body = std::string(bytes, 'x')});
}

Backlog two_partitions(BacklogLimits limits = {}) {
  Backlog backlog(limits);
  backlog.assign(p0);
  backlog.assign(p1);
  return backlog;
}

std::vector<std::int64_t> offsets(const Backlog::Batch& batch) {
  std::vector<std::int64_t> out;
  for (const auto& record : batch.records)
    out.push_back(record.record.partition * 100 + record.record.offset);
  return out;
}

}  // namespace

TEST_CASE("a batch takes each partition's records in order, and a partition is in one batch at a time") {
  auto backlog = two_partitions();
  for (int i = 0; i < 3; ++i) backlog.push(at(0, i)), backlog.push(at(1, i));
  const auto batch = backlog.take(start);
  CHECK(offsets(batch) == std::vector<std::int64_t>{0, 1, 2, 100, 101, 102});
  backlog.push(at(0, 3));
  CHECK(backlog.take(start).empty());
}

TEST_CASE("only offsets behind which everything is settled become committable, once") {
  auto backlog = two_partitions();
  for (int i = 5; i < 8; ++i) backlog.push(at(0, i));
  auto batch = backlog.take(start);
  backlog.finish(std::move(batch), std::vector{done, failed, waiting}, start);
  CHECK(backlog.take_commits() == std::vector{NextOffset{p0, 6}});
  CHECK(backlog.take_commits().empty());
}

TEST_CASE("an outcome behind an unsettled record does not count") {
  auto backlog = two_partitions();
  for (int i = 0; i < 3; ++i) backlog.push(at(0, i));
  backlog.finish(backlog.take(start), std::vector{failed, done, done}, start);
  CHECK(backlog.take_commits().empty());
  CHECK(offsets(backlog.take(start + Millis{10'000})) == std::vector<std::int64_t>{0});
}

TEST_CASE(
    "a failed record comes back first, alone, after its wait and with its attempt counted, and others go "
    "on") {
  auto backlog = two_partitions({.backoff = {Millis{100}, Millis{1000}}});
  backlog.push(at(0, 0)), backlog.push(at(0, 1));
  backlog.finish(backlog.take(start), std::vector{failed, waiting}, start);
  backlog.push(at(0, 2)), backlog.push(at(1, 0));
  CHECK(backlog.waiting() == std::vector{p0});
  auto others = backlog.take(start + Millis{10});
  CHECK(offsets(others) == std::vector<std::int64_t>{100});
  backlog.finish(std::move(others), std::vector{done}, start);
  REQUIRE(backlog.next_due().has_value());
  CHECK(*backlog.next_due() > start);
  CHECK(*backlog.next_due() <= start + Millis{100});
  auto again = backlog.take(*backlog.next_due());
  CHECK(offsets(again) == std::vector<std::int64_t>{0});
  CHECK(again.records[0].record.attempt == 2);
  backlog.finish(std::move(again), std::vector{done}, start);
  CHECK(backlog.waiting().empty());
  CHECK(offsets(backlog.take(start)) == std::vector<std::int64_t>{1, 2});
}

TEST_CASE("waiting raises no attempt") {
  auto backlog = two_partitions();
  backlog.push(at(0, 0));
  backlog.finish(backlog.take(start), std::vector{waiting}, start);
  CHECK(backlog.take(start + Millis{60'000}).records.at(0).record.attempt == 1);
}

TEST_CASE("limits of rows and bytes hold for a batch, and one record may exceed them") {
  auto backlog = two_partitions({.batch_rows_max = 2, .batch_bytes_max = 25});
  backlog.push(at(0, 0)), backlog.push(at(0, 1)), backlog.push(at(0, 2));
  auto batch = backlog.take(start);
  CHECK(offsets(batch) == std::vector<std::int64_t>{0, 1});
  backlog.finish(std::move(batch), std::vector{done, done}, start);
  backlog.push(at(1, 0, 1000));
  CHECK(offsets(backlog.take(start)) == std::vector<std::int64_t>{100});
  CHECK(offsets(backlog.take(start)) == std::vector<std::int64_t>{2});
}

TEST_CASE("partitions take turns") {
  auto backlog = two_partitions({.batch_rows_max = 1});
  for (int i = 0; i < 2; ++i) backlog.push(at(0, i)), backlog.push(at(1, i));
  std::vector<std::int64_t> order;
  for (int i = 0; i < 4; ++i) {
    auto batch = backlog.take(start);
    order.push_back(offsets(batch).at(0));
    backlog.finish(std::move(batch), std::vector{done}, start);
  }
  CHECK(order == std::vector<std::int64_t>{0, 100, 1, 101});
}

TEST_CASE("the result of a batch from before a revocation neither commits nor puts anything back") {
  auto backlog = two_partitions();
  backlog.push(at(0, 0)), backlog.push(at(1, 0));
  auto batch = backlog.take(start);
  backlog.revoke(p0);
  backlog.assign(p0);
  backlog.finish(std::move(batch), std::vector{waiting, done}, start);
  CHECK(backlog.take_commits() == std::vector{NextOffset{p1, 1}});
  CHECK(backlog.take(start + Millis{60'000}).empty());
  CHECK_FALSE(backlog.at_work(p0));
}

TEST_CASE("a retired partition takes part in no further batch, and a foreign record is dropped") {
  auto backlog = two_partitions();
  backlog.push(at(0, 0)), backlog.push(at(7, 0));
  backlog.retire(p0);
  CHECK(backlog.take(start).empty());
}

TEST_CASE("the buffer is full by rows or bytes, not counting a partition that waits") {
  auto backlog = two_partitions({.buffer_rows_max = 3, .buffer_bytes_max = 100});
  backlog.push(at(0, 0)), backlog.push(at(0, 1));
  CHECK_FALSE(backlog.full());
  backlog.push(at(0, 2));
  CHECK(backlog.full());
  backlog.finish(backlog.take(start), std::vector{failed, waiting, waiting}, start);
  CHECK_FALSE(backlog.full());
  backlog.push(at(1, 0, 100));
  CHECK(backlog.full());
}

TEST_CASE("partitions are dealt to workers evenly, and each takes its own only") {
  Backlog backlog({.workers = 2});
  for (std::int32_t p = 0; p < 4; ++p) backlog.assign({"transfers", p});
  for (std::int32_t p = 0; p < 4; ++p) backlog.push(at(p, 0));
  CHECK(offsets(backlog.take(start, 0)) == std::vector<std::int64_t>{0, 200});
  CHECK(offsets(backlog.take(start, 1)) == std::vector<std::int64_t>{100, 300});
  backlog.revoke({"transfers", 1});
  backlog.revoke({"transfers", 3});
  backlog.assign({"transfers", 5});
  backlog.push(at(5, 0));
  CHECK(backlog.take(start, 0).empty());
  CHECK(offsets(backlog.take(start, 1)) == std::vector<std::int64_t>{500});
}

TEST_CASE("partitions that wait hold no more than the buffer once again") {
  Backlog backlog({.buffer_bytes_max = 100});
  for (std::int32_t p = 0; p < 3; ++p) {
    backlog.assign({"transfers", p});
    backlog.push(at(p, 0, 60));
    if (p == 2) break;
    CHECK_FALSE(backlog.full());
    backlog.finish(backlog.take(start), std::vector{waiting}, start);
  }
  CHECK_FALSE(backlog.full());
  backlog.push(at(2, 1, 30));
  CHECK(backlog.full());
}

TEST_CASE("a handler's own wait is kept where it is longer than the backoff") {
  auto backlog = two_partitions({.backoff = {Millis{100}, Millis{1000}}});
  backlog.push(at(0, 0));
  backlog.finish(backlog.take(start),
                 std::vector{Outcome{.fate = Fate::failed, .reason = "busy", .retry_wait = Millis{60'000}}},
                 start);
  CHECK(backlog.take(start + Millis{59'999}).empty());
  CHECK_FALSE(backlog.take(start + Millis{60'000}).empty());
}

namespace {

Fetched keyed(std::int64_t offset, const std::string& key) {
  return fetched({.offset = offset, .key = key, .body = "x"});
}

}  // namespace

TEST_CASE("by key: a partition's keys are spread over workers, and each key stays with one, in order") {
  Backlog backlog({.workers = 4, .order = Order::key});
  backlog.assign(p0);
  for (int i = 0; i < 200; ++i) backlog.push(keyed(i, "a" + std::to_string(i % 19)));
  std::map<std::string, int> worker_of;
  std::map<std::string, std::int64_t> last;
  std::set<int> busy;
  for (int worker = 0; worker < 4; ++worker) {
    for (const auto& one : backlog.take(start, worker).records) {
      const std::string key(*one.record.key);
      busy.insert(worker);
      CHECK(worker_of.emplace(key, worker).first->second == worker);
      CHECK((!last.contains(key) || last[key] < one.record.offset));
      last[key] = one.record.offset;
    }
  }
  CHECK(last.size() == 19);
  CHECK(busy.size() > 1);
}

TEST_CASE("by key: a key that waits holds its partition's offset and its own later messages, and no others") {
  Backlog backlog({.workers = 2, .order = Order::key});
  backlog.assign(p0);
  std::vector<std::string> keys;  // one for each worker
  for (int worker = 0; worker < 2; ++worker)
    for (int i = 0; std::ssize(keys) == worker; ++i) {
      const std::string key = "a" + std::to_string(i);
      if (std::hash<std::string_view>{}(key) % 2 == static_cast<std::size_t>(worker)) keys.push_back(key);
    }
  backlog.push(keyed(0, keys[0])), backlog.push(keyed(1, keys[1])), backlog.push(keyed(2, keys[0]));
  backlog.finish(backlog.take(start, 0), std::vector{failed, waiting}, start);
  CHECK(backlog.waiting() == std::vector{p0});
  backlog.finish(backlog.take(start, 1), std::vector{done}, start);
  CHECK(backlog.take_commits().empty());
  CHECK(backlog.take(start, 0).empty());
  const auto later = start + Millis{60'000};
  backlog.finish(backlog.take(later, 0), std::vector{done}, later);
  CHECK(backlog.take_commits() == std::vector{NextOffset{p0, 2}});
  backlog.finish(backlog.take(later, 0), std::vector{done}, later);
  CHECK(backlog.take_commits() == std::vector{NextOffset{p0, 3}});
}

TEST_CASE("whatever workers finish when: no offset is committable past a record that is not settled") {
  const bool holds = rc::check([] {
    const int workers = *rc::gen::inRange(1, 5);
    Backlog backlog(
        {.batch_rows_max = 3, .workers = workers, .order = *rc::gen::element(Order::partition, Order::key)});
    backlog.assign(p0);
    std::set<std::int64_t> unsettled;
    std::vector<Backlog::Batch> at_work;
    std::int64_t offset = 0, committed = 0;
    MonoTime now = start;
    for (int step = *rc::gen::inRange(0, 60); step > 0; --step) {
      now += Millis{60'000};
      if (*rc::gen::inRange(0, 2) == 0) {
        offset += *rc::gen::inRange(1, 3);  // markers take up offsets, too
        unsettled.insert(offset);
        backlog.push(keyed(offset, "k" + std::to_string(*rc::gen::inRange(0, 9))));
      }
      if (auto batch = backlog.take(now, *rc::gen::inRange(0, workers)); !batch.empty())
        at_work.push_back(std::move(batch));
      if (!at_work.empty() && *rc::gen::inRange(0, 2) == 0) {
        const auto which = at_work.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(at_work));
        const auto settled = *rc::gen::inRange<std::size_t>(0, which->records.size() + 1);
        std::vector<Outcome> outcomes(which->records.size(), waiting);
        for (std::size_t i = 0; i < settled; ++i) {
          outcomes[i] = done;
          unsettled.erase(which->records[i].record.offset);
        }
        backlog.finish(std::move(*which), outcomes, now);
        at_work.erase(which);
      }
      for (const auto& [id, next] : backlog.take_commits()) {
        RC_ASSERT(next > committed);
        RC_ASSERT(unsettled.empty() || next <= *unsettled.begin());
        committed = next;
      }
    }
  });
  CHECK(holds);
}
