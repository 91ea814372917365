#pragma once
// Whether the cluster answers, told as changes only. librdkafka says when the last connection is lost, also
// one that was idle for long, and never when one is back: so a loss is verified by a question, and a real one
// is asked again until it is over. For the sources of this folder only.

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <functional>
#include <memory>
#include <string>

#include "relay/kafka/handles.hpp"
#include "relay/ports/broker.hpp"

namespace outbox::relay {

class KafkaLink {
 public:
  using Told = std::function<void(LinkState, const std::string&)>;
  /// Asks the cluster anything; the answer, whether there was one, comes later on the loop's thread.
  using Ask = std::function<void(std::function<void(bool)>)>;

  KafkaLink(boost::asio::io_context& context, Ask ask);

  /// The link counts as up from here on.
  void start(Told told);
  void stop();
  /// An error that librdkafka reported on its own, in its words.
  void take_error(rd_kafka_resp_err_t code, std::string text);
  /// The cluster has answered something.
  void proven();
  [[nodiscard]] LinkState state() const { return state_; }
  /// Whether the cluster has ever answered: asked for from start() on.
  [[nodiscard]] bool answered() const { return answered_; }

 private:
  void greet();
  void ask();
  void answered(bool yes);

  Ask ask_;
  boost::asio::steady_timer pause_;
  boost::asio::steady_timer greeting_;
  Told told_;
  LinkState state_ = LinkState::up;
  bool asking_ = false;
  bool answered_ = false;
  std::string cause_;           // the last error that says more than "all brokers are down"
  std::shared_ptr<int> alive_;  // late answers look whether it is still there
};

}  // namespace outbox::relay
