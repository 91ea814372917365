#pragma once
// The log lines of a table's upkeep. Pure, but for the logger. Thread: any.

#include "relay/log/log.hpp"
#include "relay/postgres/upkeep_options.hpp"

namespace outbox::commands {

/// One line a note; what repeats until it is mended is DEBUG.
void write_note(const log::Logger& logger, const relay::UpkeepNote& note);

}  // namespace outbox::commands
