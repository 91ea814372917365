#pragma once
// The SQL of sql/consumer with the schema's name filled in, once for an Inbox.

#include <string>

#include "base/result.hpp"

namespace outbox {

struct Statements {
  std::string schema;  ///< unquoted, for parameters
  std::string begin;
  std::string commit;
  std::string processed_insert;
  std::string processed_look_up;
  std::string processed_state;
  std::string seq_advance;
  std::string version_advance;
  std::string register_consumer;
  std::string maintain;
  std::string offset_claim;
  std::string offset_start;
  std::string offset_move;
  std::string dead_insert;
  std::string park_key;
  std::string parked_lock;
  std::string dead_take;
  std::string dead_headers;
  std::string processed_revive;
  std::string dead_done;
  std::string dead_failed;
  std::string dead_later;
  std::string publish;
  std::string body_type;
  std::string ready;
};

/// Errors: a name that can't be an identifier: fatal.
[[nodiscard]] Result<Statements> make_statements(const std::string& schema);

}  // namespace outbox
