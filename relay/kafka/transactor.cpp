#include "relay/kafka/transactor.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <atomic>
#include <map>
#include <utility>

#include "base/check.hpp"
#include "relay/kafka/lane_producer.hpp"
#include "relay/kafka/worker.hpp"

namespace outbox::relay {
namespace {

// What a lane's thread works on. The loop gives it work; only the thread touches `open`.
struct Desk {
  std::unique_ptr<LaneProducer> open;
  std::atomic<bool> give_up = false;
  Worker worker;  // last: joined before the rest goes
};

}  // namespace

struct KafkaTransactor::State : std::enable_shared_from_this<State> {
  State(boost::asio::io_context& loop, KafkaTransactorOptions wanted)
      : context(loop),
        options{std::move(wanted.kafka), std::move(wanted.pipeline), std::move(wanted.ledger_topic),
                wanted.patience} {
    // librdkafka's log comes up on the lanes' threads.
    if (options.kafka.on_log)
      options.kafka.on_log = [&loop, log = std::move(options.kafka.on_log)](
                                 int level, std::string_view facility, std::string_view text) {
        boost::asio::post(
            loop, [log, level, f = std::string{facility}, t = std::string{text}] { log(level, f, t); });
      };
  }

  boost::asio::io_context& context;
  LaneProducerOptions options;
  std::map<LedgerLane, std::shared_ptr<Desk>> desks;
  std::map<Desk*, std::shared_ptr<Desk>> leaving;  // until their threads are done
  bool stopped = false;

  // From a lane's thread: runs `turn` on the loop, unless all was stopped by then.
  template <class Turn>
  void post(Turn turn) {
    boost::asio::post(context, [weak = weak_from_this(), turn = std::move(turn)]() mutable {
      const auto self = weak.lock();
      if (self && !self->stopped) turn(*self);
    });
  }

  void leave(const std::shared_ptr<Desk>& desk) {
    desk->give_up = true;
    leaving[desk.get()] = desk;
    desk->worker.ask([this, raw = desk.get()] {
      raw->open.reset();
      post([raw](State& state) { state.leaving.erase(raw); });
    });
  }
};

KafkaTransactor::KafkaTransactor(boost::asio::io_context& context, KafkaTransactorOptions options)
    : state_(std::make_shared<State>(context, std::move(options))) {}

KafkaTransactor::~KafkaTransactor() {
  stop();
}

void KafkaTransactor::open(OpenRequest request, Done<std::vector<LedgerRow>> done) {
  close(request.ledger_lane);
  const auto desk = state_->desks[request.ledger_lane] = std::make_shared<Desk>();
  desk->worker.ask(
      [state = state_.get(), options = state_->options, raw = desk.get(), request, done = std::move(done)] {
        // `state` lives: its threads are joined before it goes.
        auto opened = LaneProducer::open(options, request, raw->give_up);
        Result<std::vector<LedgerRow>> answer;
        if (opened) {
          raw->open = std::move(*opened);
          answer = raw->open->take_rows();
        } else {
          answer = failure(std::move(opened.error()));
        }
        state->post([answer = std::move(answer), done](State&) { done(answer); });
      });
}

void KafkaTransactor::send(LedgerLane ledger_lane, std::vector<Outgoing> messages, Ended ended) {
  const auto at = state_->desks.find(ledger_lane);
  OUTBOX_CHECK(at != state_->desks.end(), "a transaction is sent by an open lane");
  Desk* raw = at->second.get();
  raw->give_up = false;
  raw->worker.ask([state = state_.get(), raw, messages = std::move(messages), ended = std::move(ended)] {
    OUTBOX_CHECK(raw->open != nullptr, "a transaction is sent by an open lane");
    TransactionEnd end = raw->open->send(messages, raw->give_up);
    if (!end.committed) raw->open.reset();
    state->post([end = std::move(end), ended](State&) { ended(end); });
  });
}

void KafkaTransactor::abandon(LedgerLane ledger_lane) {
  if (const auto at = state_->desks.find(ledger_lane); at != state_->desks.end()) at->second->give_up = true;
}

void KafkaTransactor::close(LedgerLane ledger_lane) {
  const auto at = state_->desks.find(ledger_lane);
  if (at == state_->desks.end()) return;
  const auto desk = at->second;
  state_->desks.erase(at);
  state_->leave(desk);
}

void KafkaTransactor::renew(std::map<std::string, std::string> properties) {
  state_->options.kafka.properties = std::move(properties);
}

void KafkaTransactor::stop() {
  if (std::exchange(state_->stopped, true)) return;
  for (const auto& [ledger_lane, desk] : state_->desks) desk->give_up = true;
  for (const auto& [ledger_lane, desk] : state_->desks)
    desk->worker.ask([raw = desk.get()] { raw->open.reset(); });
  for (const auto& [ledger_lane, desk] : state_->desks) desk->worker.join();
  for (const auto& [raw, desk] : state_->leaving) desk->worker.join();
  state_->desks.clear();
  state_->leaving.clear();
}

}  // namespace outbox::relay
