#include "pg/canceller.hpp"

#include <system_error>
#include <thread>

namespace outbox::pg {

Canceller::Canceller(PGconn* connection) : shared_(new Shared{CancelHandle{PQgetCancel(connection)}}) {}

void Canceller::request() {
  if (!shared_->handle || shared_->busy.exchange(true)) return;
  try {
    std::thread([shared = shared_] {
      char reason[256];
      PQcancel(shared->handle.get(), reason, sizeof reason);
      shared->busy = false;
    }).detach();
  } catch (const std::system_error&) {
    shared_->busy = false;  // no thread to be had: the connection is dropped when its time is up
  }
}

}  // namespace outbox::pg
