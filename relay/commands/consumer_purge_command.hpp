#pragma once
// `outboxd consumer purge`, as a part of `outboxd consumer`. Thread: main.

#include "relay/commands/command_line.hpp"

namespace outbox::commands {

void declare_consumer_purge(CLI::App& consumer, Action& chosen);

}  // namespace outbox::commands
