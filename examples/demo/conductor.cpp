#include "examples/demo/conductor.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "examples/demo/chaos.hpp"
#include "examples/demo/proof.hpp"
#include "examples/demo/stage.hpp"
#include "examples/demo/view.hpp"

namespace demo {
namespace {

constexpr auto look_interval = std::chrono::milliseconds(100);

volatile std::sig_atomic_t interrupted = 0;

extern "C" void on_interrupt(int) {
  interrupted = 1;
}

class Conductor {
 public:
  Conductor(const DemoOptions& options, View& view)
      : options_(options),
        view_(view),
        stage_(options),
        bank_(stage_.bank_session()),
        ledger_(stage_.ledger_session()),
        strikes_(plan_strikes(options)) {}

  void perform() {
    view_.say("PostgreSQL and Kafka are up; Kafka is " + stage_.kafka_said());
    stage_.relay().start();
    stage_.ledger().start();
    stage_.core().start();
    view_.say("payment core, outboxd and ledger are running");
    while (!done()) {
      std::this_thread::sleep_for(look_interval);
      watch();
      strike();
    }
    view_.show(progress_, progress_.produced);
    stage_.ledger().stop();
    stage_.relay().stop();
    view_.say("all is applied; outboxd and ledger stopped in order");
  }

  int prove() {
    const auto records = stage_.records();
    bool holds = true;
    std::printf("\nThe proof, read from both databases and from Kafka:\n");
    for (const Law& law : demo::prove({bank_, ledger_, records})) {
      std::printf("  %s  %s\n          %s\n", law.holds ? "  ok  " : "BROKEN", law.text.c_str(),
                  law.figures.c_str());
      holds = holds && law.holds;
    }
    std::printf(
        "\nWhile it ran: outboxd was killed %d times, the ledger %d times (kill -9); %s sent messages were "
        "sent "
        "again on purpose.\n%s in %.1f s, seed %llu.\n",
        stage_.relay().kills(), stage_.ledger().kills(), grouped(resent_).c_str(),
        holds ? "The promise held" : "THE PROMISE DID NOT HOLD", view_.seconds(),
        static_cast<unsigned long long>(options_.seed));
    return holds ? 0 : 1;
  }

 private:
  void watch() {
    if (interrupted != 0) throw std::runtime_error("interrupted");
    Progress now = look(bank_, ledger_);
    now.refused = stage_.ledger().sum_of("refused");
    if (now != progress_) moved_ = view_.seconds();
    progress_ = now;
    if (view_.seconds() - moved_ > options_.patience_s)
      throw std::runtime_error("nothing moved for " + std::to_string(options_.patience_s) + " s");
    if (!stage_.relay().running() || !stage_.ledger().running())
      throw std::runtime_error("outboxd or the ledger ended by itself");
    view_.show(progress_, std::int64_t{2} * options_.transfers);
  }

  // The copies at the topic's end are part of the job: the ledger must have met and refused them.
  bool done() {
    return !stage_.core().running() && strikes_.empty() && progress_.produced > 0 &&
           progress_.sent == progress_.produced && progress_.applied == progress_.produced &&
           stage_.ledger_lag() == 0;
  }

  void strike() {
    const auto due = std::ranges::find_if(strikes_, [&](const Strike& s) { return is_due(s, progress_); });
    if (due == strikes_.end()) return;
    carry_out(due->blow);
    strikes_.erase(due);
  }

  void carry_out(Blow blow) {
    switch (blow) {
      case Blow::kill_relay:
        stage_.relay().kill();
        stage_.relay().start();
        return view_.say("kill -9 outboxd, and started again");
      case Blow::kill_ledger:
        stage_.ledger().kill();
        stage_.ledger().start();
        return view_.say("kill -9 ledger, and started again");
      case Blow::resend: {
        const std::int64_t rows = send_again(bank_, options_.resends / resend_portions);
        resent_ += rows;
        return view_.say(grouped(rows) + " sent messages are sent again on purpose");
      }
    }
  }

  DemoOptions options_;
  View& view_;
  Stage stage_;
  outbox::pg::Session bank_;
  outbox::pg::Session ledger_;
  std::vector<Strike> strikes_;
  Progress progress_;
  double moved_ = 0;
  std::int64_t resent_ = 0;
};

}  // namespace

int conduct(const DemoOptions& options) {
  std::signal(SIGINT, on_interrupt);  // what was started is stopped and deleted on the way out
  std::signal(SIGTERM, on_interrupt);
  View view;
  view.say("a throwaway PostgreSQL, a Kafka and three programs are started in a temporary folder");
  Conductor conductor(options, view);
  conductor.perform();
  return conductor.prove();
}

}  // namespace demo
