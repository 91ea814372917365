#include "relay/commands/upkeep_log.hpp"

namespace outbox::commands {

void write_note(const log::Logger& logger, const relay::UpkeepNote& note) {
  using Event = relay::UpkeepNote::Event;
  switch (note.event) {
    case Event::partitions_made:
      return logger.info("partitions_made", {{"partitions", note.rows}});
    case Event::day_dropped:
      return logger.info("day_dropped", {{"partition", note.table}});
    case Event::day_kept:
      return logger.warn("day_kept", {{"partition", note.table},
                                      {"why", "a row of it is pending, held or dead"},
                                      {"next", "dropped once that row is settled"}});
    case Event::rows_deleted:
      return logger.info("old_rows_deleted", {{"table", note.table}, {"rows", note.rows}});
    case Event::default_used:
      return logger.warn("default_partition_used", {{"partition", note.table},
                                                    {"rows", note.rows},
                                                    {"next",
                                                     "moved when their day is made, or deleted when they are "
                                                     "settled and old"}});
    case Event::default_empty:
      return logger.info("default_partition_empty", {{"partition", note.table}});
    case Event::default_large:
      return logger.warn("partitions_not_made",
                         {{"why", "the DEFAULT partition is so large that inserts would wait for it"},
                          {"next",
                           "in a quiet hour SELECT outbox_ensure_partitions(7, 10000000), until it answers "
                           "0, moves what is of "
                           "days to come"}});
    case Event::busy:
      return logger.debug("upkeep_put_off", {{"table", note.table}, {"why", "a lock was not had in time"}});
    case Event::failed:
      return logger.warn("upkeep_failed",
                         {{"table", note.table}, {"error", note.why}, {"next", "tried again"}});
  }
}

}  // namespace outbox::commands
