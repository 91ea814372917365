#pragma once
// The port Transactor on librdkafka: a transactional producer and a thread for each open lane, since
// transactional calls block. Lifecycle: make → open, send … → stop → destroyed. Every call and every callback
// is on the thread that runs the io_context, which outlives it. KafkaOptions::on_log is called there, too.

#include <map>
#include <memory>
#include <string>

#include "relay/kafka/options.hpp"
#include "relay/ports/transactor.hpp"

namespace boost::asio {
class io_context;
}

namespace outbox::relay {

struct KafkaTransactorOptions {
  KafkaOptions kafka;
  std::string pipeline;
  std::string ledger_topic;
  Millis patience{10'000};  ///< for the answer to an open, and to a commit
};

class KafkaTransactor final : public Transactor {
 public:
  KafkaTransactor(boost::asio::io_context& context, KafkaTransactorOptions options);
  ~KafkaTransactor() override;

  void open(OpenRequest request, Done<std::vector<LedgerRow>> done) override;
  void send(LedgerLane ledger_lane, std::vector<Outgoing> messages, Ended ended) override;
  void abandon(LedgerLane ledger_lane) override;
  void close(LedgerLane ledger_lane) override;
  /// Other properties, for logins and certificates: of each producer that is made from now on.
  void renew(std::map<std::string, std::string> properties);
  /// Blocks: up to `patience` where an open or a commit is under way.
  void stop() override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace outbox::relay
