#pragma once
// The log lines of a table's upkeep. Pure, but for the logger. Thread: any.

#include "relay/io/upkeep_options.hpp"
#include "relay/log/log.hpp"

namespace outbox::commands {

/// One line a note; what repeats until it is mended is DEBUG.
void write_note(const log::Logger& logger, const relay::UpkeepNote& note);

}  // namespace outbox::commands
