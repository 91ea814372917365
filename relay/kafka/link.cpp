#include "relay/kafka/link.hpp"

#include <utility>

namespace outbox::relay {
namespace {

constexpr Millis pause_between{500};

}  // namespace

KafkaLink::KafkaLink(boost::asio::io_context& context, Ask ask)
    : ask_(std::move(ask)), pause_(context), greeting_(context) {}

void KafkaLink::start(Told told) {
  told_ = std::move(told);
  alive_ = std::make_shared<int>();
  greet();
}

// Until the cluster has answered something, nobody knows: told to nobody, but what is ready only then can
// ask.
void KafkaLink::greet() {
  ask_([this, weak = std::weak_ptr{alive_}](bool yes) {
    if (!weak.lock() || answered_) return;
    if (yes) return proven();
    greeting_.expires_after(pause_between);
    greeting_.async_wait([this, weak](boost::system::error_code error) {
      if (!error && weak.lock() && !answered_) greet();
    });
  });
}

void KafkaLink::stop() {
  alive_.reset();
  pause_.cancel();
  greeting_.cancel();
}

void KafkaLink::take_error(rd_kafka_resp_err_t code, std::string text) {
  if (code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
    cause_ = std::move(text);
    return;
  }
  if (cause_.empty()) cause_ = std::move(text);
  if (state_ == LinkState::down || asking_ || !alive_) return;
  asking_ = true;
  ask();
}

void KafkaLink::ask() {
  ask_([this, weak = std::weak_ptr{alive_}](bool yes) {
    if (weak.lock()) answered(yes);
  });
}

void KafkaLink::answered(bool yes) {
  if (yes) return proven();
  if (!asking_) return;  // a delivery has proven it meanwhile
  if (std::exchange(state_, LinkState::down) == LinkState::up) told_(LinkState::down, cause_);
  pause_.expires_after(pause_between);
  pause_.async_wait([this, weak = std::weak_ptr{alive_}](boost::system::error_code error) {
    if (!error && weak.lock() && asking_) ask();
  });
}

void KafkaLink::proven() {
  answered_ = true;
  asking_ = false;
  cause_.clear();
  if (std::exchange(state_, LinkState::up) == LinkState::down)
    told_(LinkState::up, "the cluster answers again");
}

}  // namespace outbox::relay
