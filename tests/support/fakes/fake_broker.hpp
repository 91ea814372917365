#pragma once
// Port Broker over a FakeKafka, as one idempotent producer behaves: per partition one batch after another,
// each appended whole or refused whole; reports come later. With `faults` the producer can finish for good,
// and what it had may or may not have been appended.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "relay/ports/broker.hpp"
#include "tests/support/fakes/fake_kafka.hpp"
#include "tests/support/fakes/sim_loop.hpp"

namespace outbox::test {

struct BrokerFaults {
  std::int64_t fatal_one_in = 0;  ///< of batches: the producer is finished
  std::int64_t slow_one_in = 0;   ///< of batches: seconds instead of milliseconds
  std::int64_t look_up_fails_one_in = 0;
  std::int64_t refuses_one_in = 0;  ///< of batches: the cluster answers that it may take them later
};

class FakeBroker : public relay::Broker {
 public:
  FakeBroker(SimClock& clock, relay::Loop& loop, FakeKafka& kafka, Chance& chance, const BrokerFaults& faults)
      : clock_(clock), loop_(loop), kafka_(kafka), chance_(chance), faults_(faults) {}
  ~FakeBroker() override { kill(); }

  void start(Events events) override { events_ = std::move(events); }
  void stop() override { kill(); }
  [[nodiscard]] Result<relay::Accepted> publish(const relay::Outgoing& out) override;
  void look_up(std::string topic, relay::Done<relay::TopicFacts> done) override;
  void purge() override;
  void restart(relay::DoneStatus done) override;

  std::function<void(const relay::Message&)> on_publish = [](const auto&) {};  ///< the oracle's eye

  /// kill -9: nothing is reported any more; a batch on its way may still be appended.
  void kill();

 protected:
  void report(std::vector<relay::Delivery> deliveries);

 private:
  using Lane = std::pair<std::string, std::int32_t>;  // topic, partition
  struct Sent {
    relay::Token token;
    KafkaRecord record;
    std::int64_t bytes;
  };
  struct Producer {
    bool alive = true;
    bool finished = false;
    std::map<Lane, std::deque<Sent>> queues;
    std::map<Lane, std::vector<Sent>> on_the_way;
  };
  void send(const std::shared_ptr<Producer>& producer, const Lane& lane);
  void arrive(const std::shared_ptr<Producer>& producer, const Lane& lane, const std::vector<Sent>& batch);
  [[nodiscard]] std::vector<relay::Delivery> append(const Lane& lane, const std::vector<Sent>& batch);
  void refuse_for_now(const std::shared_ptr<Producer>& producer, const Lane& lane);
  void report_unsent(Producer& producer);

  SimClock& clock_;
  relay::Loop& loop_;
  FakeKafka& kafka_;
  Chance& chance_;
  const BrokerFaults& faults_;
  Events events_;
  std::shared_ptr<Producer> producer_ = std::make_shared<Producer>();
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace outbox::test
