#pragma once
// One line a pipeline and period about what it did, for who reads the log and has no dashboard: only where
// something was done or waits. Also the moment at which a flood of warnings that has ended is told.
// Lifecycle: constructed → start() → gone. Thread: the loop's.

#include <memory>
#include <string>
#include <vector>

#include "relay/core/health/histogram.hpp"
#include "relay/log/log.hpp"
#include "relay/postgres/survey.hpp"
#include "relay/shell/pipeline.hpp"

namespace outbox::commands {

struct SummarySubject {
  std::string name{};
  const relay::Pipeline* pipeline = nullptr;
  const relay::Survey* survey = nullptr;
};

class Summary {
 public:
  Summary(relay::Loop& loop, Millis every, std::vector<SummarySubject> subjects, log::Logger log);
  ~Summary();
  Summary(const Summary&) = delete;
  Summary& operator=(const Summary&) = delete;

  void start();
  void every(Millis period) { every_ = period; }  ///< from the next line on

 private:
  struct Told {
    relay::Counters counters{};
    relay::Histogram created_to_ack{};
  };
  void tell();
  void tell_of(const SummarySubject& subject, Told& told, double seconds);

  relay::Loop& loop_;
  Millis every_;
  std::vector<SummarySubject> subjects_;
  std::vector<Told> told_;
  log::Logger log_;
  MonoTime told_at_{};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace outbox::commands
