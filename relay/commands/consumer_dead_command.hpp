#pragma once
// `outboxd consumer dead list|show|retry|discard`, as a part of `outboxd consumer`. Thread: main.

#include "relay/commands/command_line.hpp"

namespace outbox::commands {

void declare_consumer_dead(CLI::App& consumer, Action& chosen);

}  // namespace outbox::commands
