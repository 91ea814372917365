#pragma once
// Asks a server to cancel what a connection runs. PQcancel blocks, for as long as the network likes, so it
// runs on a thread of its own which nobody waits for; one request at a time. Private to pg/.

#include <atomic>
#include <memory>

#include "pg/libpq.hpp"

namespace outbox::pg {

class Canceller {
 public:
  /// Takes what it needs from an established connection, which may be closed before a request is through.
  explicit Canceller(PGconn* connection);
  /// Returns at once. Nothing happens while an earlier request is on its way.
  void request();

 private:
  struct Shared {
    CancelHandle handle;
    std::atomic<bool> busy = false;
  };
  std::shared_ptr<Shared> shared_;
};

}  // namespace outbox::pg
