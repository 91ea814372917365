#pragma once
// Named places at which a test has the process killed, as by kill -9. They are compiled in where
// OUTBOX_CRASH_POINTS is defined (every build type but those for release); elsewhere a crash point is
// nothing. OUTBOX_CRASH_AT=NAME in the environment kills the process when it passes there first, NAME:3 at
// the third time. Any thread.

#include <array>
#include <string_view>

namespace outbox {

enum class CrashPoint {
  consumer_after_fetch,
  consumer_after_claim,
  consumer_mid_handler,
  consumer_before_commit,
  consumer_after_commit,
  consumer_in_rebalance,
};

struct CrashPointRow {
  CrashPoint point;
  std::string_view name;
  std::string_view window;  ///< what is done and what is not when the process dies there
};
/// The one list, in the order of the enum.
inline constexpr std::array crash_points = {
    CrashPointRow{CrashPoint::consumer_after_fetch, "consumer_after_fetch",
                  "a record was fetched; nothing else was done"},
    CrashPointRow{CrashPoint::consumer_after_claim, "consumer_after_claim",
                  "dedup rows are inserted; no handler ran"},
    CrashPointRow{CrashPoint::consumer_mid_handler, "consumer_mid_handler",
                  "a handler made the first of its writes"},
    CrashPointRow{CrashPoint::consumer_before_commit, "consumer_before_commit",
                  "all is written; the transaction is open"},
    CrashPointRow{CrashPoint::consumer_after_commit, "consumer_after_commit",
                  "committed in the database; the offset has not moved"},
    CrashPointRow{CrashPoint::consumer_in_rebalance, "consumer_in_rebalance",
                  "partitions are being handed over; their last offsets are not committed"},
};

#ifdef OUTBOX_CRASH_POINTS
inline constexpr bool crash_points_compiled = true;
/// Kills the process where this point and this pass are the ones that the environment names. A name that is
/// in no list ends the process at the first point, with the reason, so that no test passes for a typing
/// error.
void crash_here(CrashPoint point) noexcept;
#else
inline constexpr bool crash_points_compiled = false;
inline void crash_here(CrashPoint) noexcept {}
#endif

}  // namespace outbox
