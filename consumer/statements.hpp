#pragma once
// The SQL of sql/consumer with the schema's name filled in, once for an Inbox.

#include <string>

#include "base/result.hpp"

namespace outbox {

struct Statements {
  std::string schema;  ///< unquoted, for parameters
  std::string begin;
  std::string processed_insert;
  std::string processed_look_up;
  std::string dead_insert;
  std::string publish;
  std::string body_type;
  std::string ready;
};

/// Errors: a name that can't be an identifier: fatal.
[[nodiscard]] Result<Statements> make_statements(const std::string& schema);

}  // namespace outbox
