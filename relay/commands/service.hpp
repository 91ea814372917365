#pragma once
// The daemon as systemd sees it. READY once every pipeline has worked: PostgreSQL granted lanes or named
// their owner, and Kafka answered. The watchdog is fed while every pipeline makes progress, has nothing to
// do, or waits for a server that is known to be away; work that stands still for no known reason starves it.
// Lifecycle: constructed → start() → stopping(). Thread: the loop's.

#include <functional>
#include <string>
#include <vector>

#include "relay/host/systemd_notify.hpp"
#include "relay/kafka/broker.hpp"
#include "relay/log/log.hpp"
#include "relay/postgres/survey.hpp"
#include "relay/shell/pipeline.hpp"

namespace outbox::commands {

struct ServiceSubject {
  std::string name{};
  const relay::Pipeline* pipeline = nullptr;
  const relay::KafkaBroker* broker = nullptr;
  const relay::Survey* survey = nullptr;
};

class Service {
 public:
  Service(relay::Loop& loop, relay::ServiceNotify notify, std::vector<ServiceSubject> subjects,
          log::Logger log);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  void start();
  void stopping(Millis at_most);
  /// Tells systemd that `reload` runs, and when it is done.
  void reload(const std::function<void()>& reload);

 private:
  void tick();
  void feed(bool stuck);
  [[nodiscard]] bool works() const;
  [[nodiscard]] std::string lag();

  relay::Loop& loop_;
  relay::ServiceNotify notify_;
  std::vector<ServiceSubject> subjects_;
  std::vector<std::int64_t> marked_;  // at the last status
  log::Logger log_;
  bool ready_ = false;
  bool starving_ = false;
  bool stopping_ = false;
  MonoTime status_at_{};
  std::string status_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace outbox::commands
