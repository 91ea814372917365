#include "tests/support/fakes/fake_broker.hpp"

#include <algorithm>

#include "relay/core/message/topic_name.hpp"

namespace outbox::test {

using namespace relay;

namespace {

constexpr std::size_t batch_messages_max = 20;

}  // namespace

Result<Accepted> FakeBroker::publish(const Outgoing& out) {
  if (producer_->finished) return failure(Disposition::fatal, "the producer is finished");
  if (const auto fault = topic_name_fault(out.message->topic))
    return failure(Disposition::quarantine, std::string{*fault});
  for (const Header& h : out.message->headers)
    if (h.name.starts_with("outbox-"))
      return failure(Disposition::quarantine, "a header forges a name of the relay");
  on_publish(*out.message);
  const Lane lane{std::string{out.message->topic}, out.partition.value};
  const auto bytes = static_cast<std::int64_t>(out.message->body ? out.message->body->size() : 0);
  producer_->queues[lane].push_back({out.token, record_of(*out.message), bytes});
  if (!producer_->on_the_way.contains(lane)) send(producer_, lane);
  return Accepted::queued;
}

void FakeBroker::send(const std::shared_ptr<Producer>& producer, const Lane& lane) {
  producer->on_the_way[lane];
  clock_.after(chance_.micros(10, 200), [this, producer, lane, alive = alive_] {
    if (!*alive || !producer->alive || producer->finished) return;
    auto& queue = producer->queues[lane];
    const std::size_t count = std::min(queue.size(), batch_messages_max);
    if (count == 0) {
      producer->on_the_way.erase(lane);
      return;
    }
    std::vector<Sent> batch(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(count));
    queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(count));
    producer->on_the_way[lane] = batch;
    const Micros travel =
        chance_.one_in(faults_.slow_one_in) ? chance_.micros(100'000, 4'000'000) : chance_.micros(200, 3000);
    const MonoTime lands = std::max(clock_.now() + travel, kafka_.answers_from(lane.first, lane.second));
    clock_.at(lands, [this, producer, lane, batch = std::move(batch)] { arrive(producer, lane, batch); });
  });
}

// May come after the producer, or its whole process, is gone: then the batch lands or not, and nobody is
// told.
void FakeBroker::arrive(const std::shared_ptr<Producer>& producer, const Lane& lane,
                        const std::vector<Sent>& batch) {
  if (!producer->alive) {
    if (chance_.one_in(2)) static_cast<void>(append(lane, batch));
    return;
  }
  if (producer->finished) return;
  if (chance_.one_in(faults_.fatal_one_in)) {
    producer->finished = true;
    if (chance_.one_in(2)) static_cast<void>(append(lane, batch));
    loop_.post([this, alive = alive_] {
      if (*alive && events_.on_fatal)
        events_.on_fatal(Error{Disposition::fatal, "FATAL", "the producer is finished", ""});
    });
    return;
  }
  if (chance_.one_in(faults_.refuses_one_in)) return refuse_for_now(producer, lane);
  std::vector<Delivery> deliveries = append(lane, batch);
  producer->on_the_way.erase(lane);
  if (!producer->queues[lane].empty()) send(producer, lane);
  report(std::move(deliveries));
}

// It, and what was published behind it until that is told, as a partition with too few replicas would.
void FakeBroker::refuse_for_now(const std::shared_ptr<Producer>& producer, const Lane& lane) {
  clock_.after(chance_.micros(20, 1000), [this, producer, lane, alive = alive_] {
    if (!*alive) return;
    loop_.post([this, producer, lane, alive] {
      if (!*alive || !producer->alive || producer->finished) return;
      std::vector<Delivery> out;
      const auto add = [&](const Sent& sent) {
        out.push_back(
            {sent.token, Partition{lane.second}, Offset{-1}, Refusal::unsent, "too few replicas", true});
      };
      std::ranges::for_each(producer->on_the_way[lane], add);
      std::ranges::for_each(producer->queues[lane], add);
      producer->on_the_way.erase(lane);
      producer->queues.erase(lane);
      if (events_.on_delivered) events_.on_delivered(out);
    });
  });
}

std::vector<Delivery> FakeBroker::append(const Lane& lane, const std::vector<Sent>& batch) {
  KafkaTopic* topic = kafka_.find(lane.first);
  std::optional<Refusal> refusal;
  if (topic == nullptr || lane.second >= topic->partitions)
    refusal = Refusal::topic;
  else if (std::any_of(batch.begin(), batch.end(),
                       [&](const Sent& s) { return s.bytes > topic->message_bytes_real; }))
    refusal = Refusal::message;
  std::vector<Delivery> out;
  for (const Sent& sent : batch) {
    Delivery d{sent.token, Partition{lane.second}, Offset{-1}, refusal, refusal ? "refused" : ""};
    if (!refusal) d.offset = kafka_.append(*topic, d.partition, sent.record);
    out.push_back(std::move(d));
  }
  return out;
}

void FakeBroker::report(std::vector<Delivery> deliveries) {
  clock_.after(chance_.micros(20, 1000),
               [this, alive = alive_, deliveries = std::move(deliveries)]() mutable {
                 if (!*alive) return;
                 loop_.post([this, alive, deliveries = std::move(deliveries)] {
                   if (*alive && events_.on_delivered) events_.on_delivered(deliveries);
                 });
               });
}

void FakeBroker::report_unsent(Producer& producer) {
  std::vector<Delivery> out;
  const auto add = [&](const Lane& lane, const Sent& sent) {
    out.push_back({sent.token, Partition{lane.second}, Offset{-1}, Refusal::unsent, "purged"});
  };
  for (const auto& [lane, batch] : producer.on_the_way)
    for (const Sent& sent : batch) add(lane, sent);
  for (const auto& [lane, queue] : producer.queues)
    for (const Sent& sent : queue) add(lane, sent);
  if (!out.empty()) report(std::move(out));
}

// As librdkafka does: the queue is dropped, what is on its way may or may not land, and the producer lives
// on.
void FakeBroker::purge() {
  if (producer_->finished) return;
  const auto old = std::exchange(producer_, std::make_shared<Producer>());
  report_unsent(*old);
  old->alive = false;
}

void FakeBroker::restart(DoneStatus done) {
  const auto old = std::exchange(producer_, std::make_shared<Producer>());
  report_unsent(*old);
  old->alive = false;
  clock_.after(chance_.micros(2000, 50'000), [this, alive = alive_, done = std::move(done)]() mutable {
    if (!*alive) return;
    loop_.post([alive, done = std::move(done)] {
      if (*alive) done({});
    });
  });
}

void FakeBroker::look_up(std::string topic, Done<TopicFacts> done) {
  const bool fails = chance_.one_in(faults_.look_up_fails_one_in) || clock_.now() < kafka_.away_until;
  clock_.after(chance_.micros(200, 3000),
               [this, fails, topic = std::move(topic), done = std::move(done), alive = alive_]() mutable {
                 if (!*alive) return;
                 Result<TopicFacts> facts = TopicFacts{};
                 const KafkaTopic* known = kafka_.find(topic);
                 if (fails)
                   facts = failure(Disposition::retry, "no broker answers");
                 else if (known == nullptr)
                   facts = TopicFacts{TopicState::missing, 0, 0, "the topic does not exist"};
                 else
                   facts = TopicFacts{TopicState::present, known->partitions, known->message_bytes_max, ""};
                 loop_.post([alive, done = std::move(done), facts = std::move(facts)]() mutable {
                   if (*alive) done(std::move(facts));
                 });
               });
}

void FakeBroker::kill() {
  *alive_ = false;
  producer_->alive = false;
}

}  // namespace outbox::test
