#include "relay/kafka/broker.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "relay/core/kafka/errors.hpp"
#include "relay/core/kafka/version.hpp"
#include "relay/core/message/topic_name.hpp"
#include "relay/kafka/conf.hpp"
#include "relay/kafka/link.hpp"
#include "relay/kafka/lookup.hpp"
#include "relay/kafka/producer.hpp"
#include "relay/kafka/wake_fd.hpp"
#include "relay/kafka/worker.hpp"

namespace outbox::relay {
namespace {

constexpr int events_per_turn = 64;          // then others on the loop have their turn
constexpr Millis emptying_patience{10'000};  // for what is in flight, before another producer comes
constexpr int no_fd = -1;                    // wakes nobody
constexpr Millis link_patience{1'500};       // for an answer, before the link counts as down
constexpr std::int64_t batch_slack = 128;    // librdkafka estimates a batch's own overhead

using Producer = std::shared_ptr<KafkaProducer>;

struct Replacement {
  std::vector<Delivery> deliveries;  // the last of the old producer
  Result<Producer> next;
};

}  // namespace

struct KafkaBroker::State : std::enable_shared_from_this<State> {
  enum class Phase { made, running, replacing, ended, stopped };

  State(boost::asio::io_context& loop, KafkaOptions wanted)
      : context(loop),
        options(std::move(wanted)),
        envelope(options.envelope),
        wake(loop, [this] { drain(); }),
        link(loop, [this](auto answered) { ask_cluster(std::move(answered)); }),
        empty_timer(loop) {}

  boost::asio::io_context& context;
  KafkaOptions options;
  Envelope envelope;
  WakeFd wake;
  Producer producer;
  Phase phase = Phase::made;
  Events events;
  Worker worker;
  KafkaLink link;
  std::vector<Delivery> deliveries;  // kept for its memory
  std::vector<Delivery> rejected;    // by produce() itself, to be reported as if by the cluster
  std::string renamed;               // what kafka_name() answered last
  std::optional<KafkaStatistics> statistics;
  std::optional<Error> fatal;
  bool fatal_told = false;
  std::shared_ptr<Replacement> replacement;    // the worker writes it while the phase is `replacing`
  std::vector<std::function<void()>> waiting;  // for the producer that replaces this one
  bool emptying = false;                       // it comes once what is in flight is reported
  std::optional<std::int64_t> narrower;        // batch bytes of that one
  boost::asio::steady_timer empty_timer;

  // Runs `turn` on the loop, unless the broker is stopped by then.
  template <class Turn>
  void post(Turn turn) {
    boost::asio::post(context, [weak = weak_from_this(), turn = std::move(turn)]() mutable {
      const auto self = weak.lock();
      if (self && self->phase != Phase::stopped) turn(*self);
    });
  }

  [[nodiscard]] std::string_view kafka_name(std::string_view topic);
  void drain();
  void take(rd_kafka_event_t* event);
  void take_error(rd_kafka_event_t* event);
  void take_statistics(std::string json);
  void report();
  void reject(const Outgoing& out, rd_kafka_resp_err_t error);
  void ask_cluster(std::function<void(bool)> answered);
  void ask_facts(std::string topic, Done<TopicFacts> done);
  void answer_facts(Result<TopicFacts> facts, Done<TopicFacts> done);
  void renew(std::map<std::string, std::string> properties, const DoneStatus& done);
  void replace_when_empty(std::function<void()> then);
  void replace_if_empty();
  void replace(DoneStatus done);
  void replaced(const DoneStatus& done);
  void go_on();
};

// The view holds until the next call, or as long as `topic`.
std::string_view KafkaBroker::State::kafka_name(std::string_view topic) {
  if (options.topics.plain()) return topic;
  return renamed = options.topics.to_kafka(topic);
}

void KafkaBroker::State::drain() {
  wake.clear();
  if (phase != Phase::running) return;
  const auto self = shared_from_this();
  int taken = 0;
  for (; taken < events_per_turn; ++taken) {
    const auto event = producer->poll();
    if (!event) break;
    take(event.get());
  }
  if (taken == events_per_turn) post([](State& state) { state.drain(); });
  replace_if_empty();
  report();
  // A callback may have destroyed the broker, and the fd's turn that this is still needs it.
  if (phase == Phase::stopped) boost::asio::post(context, [self] {});
}

void KafkaBroker::State::take(rd_kafka_event_t* event) {
  switch (rd_kafka_event_type(event)) {
    case RD_KAFKA_EVENT_DR:
      producer->take_deliveries(event, deliveries);
      break;
    case RD_KAFKA_EVENT_ERROR:
      take_error(event);
      break;
    case RD_KAFKA_EVENT_LOG: {
      const char* facility = "";
      const char* text = "";
      int level = 0;
      if (rd_kafka_event_log(event, &facility, &text, &level) == 0 && options.on_log) {
        options.on_log(level, facility, text);
      }
      break;
    }
    case RD_KAFKA_EVENT_STATS:
      take_statistics(rd_kafka_event_stats(event));
      break;
    default:
      break;
  }
}

// With many partitions it is a megabyte, and reading it takes milliseconds: not on the loop.
void KafkaBroker::State::take_statistics(std::string json) {
  worker.ask([this, json = std::move(json)] {
    auto read = parse_kafka_statistics(json);
    if (!read) return;
    post([read = std::move(*read)](State& state) { state.statistics = read; });
  });
}

void KafkaBroker::State::take_error(rd_kafka_event_t* event) {
  const auto code = rd_kafka_event_error(event);
  if (code == RD_KAFKA_RESP_ERR__FATAL || rd_kafka_event_error_is_fatal(event) != 0) {
    std::array<char, 512> text{};
    const auto cause = rd_kafka_fatal_error(producer->handle(), text.data(), text.size());
    fatal = to_error(cause, "the producer has ended", text.data());
    fatal->disposition = Disposition::fatal;
    return;
  }
  link.take_error(code, rd_kafka_event_error_string(event));
}

void KafkaBroker::State::report() {
  if (!deliveries.empty()) {
    if (std::ranges::any_of(deliveries, [](const Delivery& d) { return !d.refusal; })) link.proven();
    auto told = std::exchange(deliveries, {});
    if (events.on_delivered) events.on_delivered(told);
    if (deliveries.empty()) deliveries.swap(told);  // its memory serves the next turn
    deliveries.clear();
  }
  if (!fatal || fatal_told || phase != Phase::running) return;
  fatal_told = true;
  if (events.on_fatal) events.on_fatal(*fatal);
}

// The port knows no such answer of publish(), and the cluster's own refusals come as deliveries: so does this
// one.
void KafkaBroker::State::reject(const Outgoing& out, rd_kafka_resp_err_t error) {
  auto said = to_error(error, "topic " + std::string{out.message->topic}, rd_kafka_err2str(error));
  if (rejected.empty()) {
    post([](State& state) {
      state.deliveries.insert(state.deliveries.end(), state.rejected.begin(), state.rejected.end());
      state.rejected.clear();
      state.report();
    });
  }
  rejected.push_back({out.token, out.partition, Offset{}, kafka_error(error).refusal, said.text()});
}

void KafkaBroker::State::ask_cluster(std::function<void(bool)> answered) {
  if (!producer) {
    waiting.push_back([this, answered = std::move(answered)] { ask_cluster(answered); });
    return;
  }
  worker.ask([this, asked = producer, answered = std::move(answered)] {
    const bool yes = cluster_answers(asked->handle(), link_patience);
    post([yes, answered](State&) { answered(yes); });
  });
}

void KafkaBroker::State::ask_facts(std::string topic, Done<TopicFacts> done) {
  if (const auto refusal = options.topics.refusal(topic)) {
    TopicFacts facts;
    facts.state = TopicState::forbidden;
    facts.reason = *refusal;
    return post([facts = std::move(facts), done = std::move(done)](State&) { done(facts); });
  }
  if (!producer) {
    waiting.push_back([this, topic = std::move(topic), done = std::move(done)] { ask_facts(topic, done); });
    return;
  }
  // While the cluster is away a queue of patient questions would keep a restart waiting behind them.
  const auto patience = link.state() == LinkState::down ? std::min(options.look_up_patience, link_patience)
                                                        : options.look_up_patience;
  worker.ask([this, asked = producer, topic = std::string{kafka_name(topic)}, done = std::move(done),
              patience, create = options.create] {
    // `this` lives: the worker is joined before it goes.
    auto facts = look_up_topic(asked->handle(), topic, patience, worker.stopping());
    if (create && facts && facts->state == TopicState::missing && !topic_name_fault(topic))
      facts = create_topic(asked->handle(), topic, *create, patience, worker.stopping());
    post([facts = std::move(facts), done](State& state) { state.answer_facts(facts, done); });
  });
}

void KafkaBroker::State::answer_facts(Result<TopicFacts> facts, Done<TopicFacts> done) {
  if (facts) link.proven();
  const bool present = facts && facts->state == TopicState::present;
  const std::int64_t fits = present ? std::max<std::int64_t>(facts->message_bytes_max - batch_slack, 1) : 0;
  if (!present || fits >= options.batch_bytes_max) return done(std::move(facts));
  narrower = std::min(fits, narrower.value_or(fits));
  replace_when_empty([facts = std::move(facts), done = std::move(done)] { done(facts); });
}

// Tried out first, since a producer that is gone for one that cannot be made would be the relay's end.
void KafkaBroker::State::renew(std::map<std::string, std::string> properties, const DoneStatus& done) {
  KafkaOptions wanted = options;
  wanted.properties = std::move(properties);
  worker.ask([this, wanted = std::move(wanted), done] {
    const auto tried = KafkaProducer::make(wanted, no_fd);
    post([wanted, done, status = tried ? Status{} : failure(tried.error())](State& state) {
      if (!status) return done(status);
      state.options.properties = wanted.properties;
      state.replace_when_empty([&state, done] {
        if (state.events.on_delivered) state.events.on_delivered({});
        if (state.phase != Phase::stopped) done({});
      });
    });
  });
}

// Messages of the topics in use must not be spread over two producers, or they could pass each other: so the
// old one is emptied first, and publish() says queue_full meanwhile.
void KafkaBroker::State::replace_when_empty(std::function<void()> then) {
  emptying = true;
  waiting.push_back(std::move(then));
  empty_timer.expires_after(link.state() == LinkState::down ? Millis{0} : emptying_patience);
  empty_timer.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    const auto self = weak.lock();
    if (!error && self && self->phase == Phase::running && self->emptying) self->producer->purge();
  });
  replace_if_empty();
}

void KafkaBroker::State::replace_if_empty() {
  if (!emptying || phase != Phase::running || producer->outstanding() > 0) return;
  replace([this](const Status& status) {
    if (!status && events.on_fatal) events.on_fatal(status.error());
  });
}

void KafkaBroker::State::replace(DoneStatus done) {
  phase = Phase::replacing;
  emptying = false;
  if (narrower) options.batch_bytes_max = std::exchange(narrower, std::nullopt).value();
  empty_timer.cancel();
  if (producer) producer->silence();
  replacement = std::make_shared<Replacement>();
  worker.ask([this, to = replacement, old = std::exchange(producer, nullptr), done = std::move(done),
              wanted = options, fd = wake.fd()]() mutable {
    if (old) to->deliveries = old->retire();
    OUTBOX_CHECK(old.use_count() <= 1, "a producer is gone before its messages are told");
    old.reset();
    if (!worker.stopping()) to->next = KafkaProducer::make(wanted, fd);
    post([done](State& state) { state.replaced(done); });
  });
}

void KafkaBroker::State::replaced(const DoneStatus& done) {
  const auto self = shared_from_this();
  const auto made = std::exchange(replacement, nullptr);
  phase = made->next ? Phase::running : Phase::ended;
  if (made->next) producer = std::move(*made->next);
  fatal.reset();
  fatal_told = false;
  deliveries.insert(deliveries.end(), made->deliveries.begin(), made->deliveries.end());
  report();
  if (phase == Phase::ended) return done(failure(made->next.error()));
  go_on();
  if (phase != Phase::stopped) done({});
  if (phase == Phase::running) drain();
}

void KafkaBroker::State::go_on() {
  for (auto& turn : std::exchange(waiting, {})) {
    if (phase == Phase::stopped) return;
    turn();
  }
}

// ---------------------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<KafkaBroker>> KafkaBroker::make(boost::asio::io_context& context,
                                                       KafkaOptions options) {
  auto state = std::make_shared<State>(context, std::move(options));
  auto producer = KafkaProducer::make(state->options, state->wake.fd());
  if (!producer) return failure(producer.error());
  state->producer = std::move(*producer);
  return std::unique_ptr<KafkaBroker>{new KafkaBroker{std::move(state)}};
}

KafkaBroker::KafkaBroker(std::shared_ptr<State> state) : state_(std::move(state)) {}

KafkaBroker::~KafkaBroker() {
  stop();
  state_->worker.join();
}

Status KafkaBroker::check(const KafkaOptions& options) {
  if (auto fit = check_kafka_version(); !fit) return fit;
  const auto conf = make_kafka_conf(options);
  if (!conf) return failure(conf.error());
  return {};
}

std::string KafkaBroker::library_version() {
  return kafka_version_text(static_cast<std::int32_t>(rd_kafka_version()));
}

std::string KafkaBroker::library_notes() {
  return judge_kafka_version(static_cast<std::int32_t>(rd_kafka_version())).text();
}

const std::optional<KafkaStatistics>& KafkaBroker::statistics() const {
  return state_->statistics;
}

bool KafkaBroker::answered() const {
  return state_->link.answered();
}

void KafkaBroker::start(Events events) {
  state_->events = std::move(events);
  state_->phase = State::Phase::running;
  state_->link.start([state = state_.get()](LinkState link, const std::string& text) {
    if (state->events.on_link) state->events.on_link(link, text);
  });
  state_->wake.watch();
  state_->post([](State& state) { state.drain(); });
}

void KafkaBroker::stop() {
  State& state = *state_;
  if (state.phase == State::Phase::stopped) return;
  const bool replacing = state.phase == State::Phase::replacing;
  const bool in_flight = state.producer && state.producer->outstanding() > 0;
  state.phase = State::Phase::stopped;
  state.link.stop();
  state.empty_timer.cancel();
  if (state.producer) {
    state.producer->silence();
    state.worker.ask([old = std::exchange(state.producer, nullptr)]() mutable { old.reset(); });
  }
  if (replacing || in_flight) state.worker.join();
  state.replacement.reset();  // with a producer, perhaps, that knows the eventfd
}

Result<Accepted> KafkaBroker::publish(const Outgoing& out) {
  State& state = *state_;
  const std::string_view topic = state.kafka_name(out.message->topic);
  if (const auto fault = topic_name_fault(topic)) {
    return failure(Disposition::quarantine, std::string{*fault}, "TOPIC_EXCEPTION",
                   "correct the row's topic");
  }
  const auto headers = state.envelope.headers(*out.message);
  if (!headers) return failure(headers.error());
  if (state.phase == State::Phase::ended)
    return failure(Disposition::fatal, "there is no producer", "", "restart");
  if (!state.producer || state.emptying) return Accepted::queue_full;
  const auto error = state.producer->produce(out, topic, *headers);
  switch (error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      return Accepted::queued;
    case RD_KAFKA_RESP_ERR__QUEUE_FULL:
      return Accepted::queue_full;
    default:
      break;
  }
  if (kafka_error(error).refusal == Refusal::producer) {
    return failure(
        to_error(error, "publishing to topic " + std::string{out.message->topic}, rd_kafka_err2str(error)));
  }
  state.reject(out, error);
  return Accepted::queued;
}

void KafkaBroker::look_up(std::string topic, Done<TopicFacts> done) {
  if (state_->phase == State::Phase::stopped) return;
  state_->ask_facts(std::move(topic), std::move(done));
}

void KafkaBroker::renew(std::map<std::string, std::string> properties, DoneStatus done) {
  if (state_->phase != State::Phase::stopped) state_->renew(std::move(properties), done);
}

void KafkaBroker::purge() {
  if (state_->producer) state_->producer->purge();
}

void KafkaBroker::restart(DoneStatus done) {
  if (state_->phase == State::Phase::replacing) {
    state_->waiting.push_back([done = std::move(done)] { done({}); });
    return;
  }
  if (state_->phase != State::Phase::stopped) state_->replace(std::move(done));
}

}  // namespace outbox::relay
