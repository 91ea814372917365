#include "bench/long_transaction.hpp"

#include <chrono>
#include <memory>
#include <thread>

#include "bench/relay.hpp"
#include "tests/support/eventually.hpp"

namespace bench {
namespace {

using outbox::test::must;

constexpr int trickle = 500;  // rows of a round, each claimed by itself
constexpr std::chrono::milliseconds between{20};
constexpr outbox::Millis drained_within{600'000};

struct Claims {
  double seconds = 0;
  double count = 0;
};

/// A database, the relay on it, and what its claims took.
class Subject {
 public:
  Subject(Stage& stage, const std::string& name)
      : stage_(stage), name_(name), topic_(stage.kafka().new_topic(name, partitions)) {
    stage.make_database(name);
    session_ = std::make_unique<outbox::pg::Session>(stage.session(name));
    relay_ = std::make_unique<Relay>(stage, name);
  }
  ~Subject() = default;
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  void pass(int rows) {
    load_backlog(*session_, topic_, rows);
    if (!outbox::test::happens_within(drained_within, [&] {
          return number_of(*session_, "SELECT count(*) FROM public.outbox_msg WHERE status = 'PENDING'") == 0;
        }))
      throw std::runtime_error(name_ + ": rows are still PENDING");
  }
  void insert(int number) {
    outbox::pg::Params params;
    params.text(topic_).untyped(body_of(number));
    must(session_->exec_prepared("INSERT INTO public.outbox_msg (topic, msg_key, body) VALUES ($1, 'k', $2)",
                                 params));
  }
  void begin() { begun_ = claims(); }
  [[nodiscard]] double mean_us() const {
    const Claims now = claims();
    return 1e6 * (now.seconds - begun_.seconds) / (now.count - begun_.count);
  }
  void close() {
    relay_->stop();
    session_.reset();
    stage_.drop_database(name_);
    stage_.kafka().delete_topic(topic_);
  }

 private:
  [[nodiscard]] Claims claims() const {
    return {relay_->metric(R"(outboxd_claim_seconds_sum{pipeline="bench"})"),
            relay_->metric(R"(outboxd_claim_seconds_count{pipeline="bench"})")};
  }

  Stage& stage_;
  std::string name_;
  std::string topic_;
  std::unique_ptr<outbox::pg::Session> session_;
  std::unique_ptr<Relay> relay_;
  Claims begun_;
};

}  // namespace

void measure_long_transaction(Stage& stage, const Options& options, Figures& figures) {
  Figures::say("claims beside an idle transaction while " + std::to_string(options.passing_rows) +
               " rows pass");
  Subject alone(stage, "alone");
  Subject beside(stage, "beside");
  {
    outbox::pg::Session old = stage.session("beside");
    must(old.exec_script("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM public.outbox_msg"));
    alone.pass(options.passing_rows);
    beside.pass(options.passing_rows);
    for (int round = 0; round < options.rounds; ++round) {
      alone.begin();
      beside.begin();
      for (int i = 0; i < trickle; ++i) {
        alone.insert(i);
        beside.insert(i);
        std::this_thread::sleep_for(between);
      }
      figures.add("claim_us", alone.mean_us());
      figures.add("claim_beside_long_transaction_us", beside.mean_us());
    }
    must(old.exec("COMMIT"));
  }
  figures.add("long_transaction_poll_ratio",
              figures.median("claim_beside_long_transaction_us") / figures.median("claim_us"));
  alone.close();
  beside.close();
}

}  // namespace bench
