#pragma once
// Looks at the whole outbox from time to time, for metrics and the status page, on a connection of its own so
// that nothing of the money path waits for it. After each look it rests at least nineteen times as long as
// the look took: surveying never takes more than a twentieth of a server's core, however large the backlog
// is. Lifecycle: constructed → start() → stop(). Thread: the loop's.

#include <memory>

#include "pg/identifier.hpp"
#include "pg/session.hpp"
#include "relay/postgres/survey_facts.hpp"

namespace boost::asio {
class io_context;
}

namespace outbox::relay {

struct SurveyOptions {
  pg::ConnectOptions connect{};
  pg::TableName table{"public", "outbox_msg"};
  bool prepared = true;     ///< false: behind a pooler in transaction mode
  Millis every{5000};       ///< between two looks
  Millis deadline{10'000};  ///< of one look, which is cancelled then
  std::uint64_t seed = 1;   ///< of the reconnects' jitter
};

class Survey {
 public:
  Survey(boost::asio::io_context& loop, SurveyOptions options);
  ~Survey();
  Survey(const Survey&) = delete;
  Survey& operator=(const Survey&) = delete;

  void start();
  void stop();
  void set_uri(const std::string& uri);  ///< as pg::Connection has it
  /// From the next look on.
  void every(Millis interval);
  [[nodiscard]] const SurveyFigures& figures() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace outbox::relay
