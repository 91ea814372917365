#pragma once
// Named places at which a test can kill the process, delay it, or inject an error. They are compiled in where OUTBOX_CRASH_POINTS is defined (every build type but those for release); elsewhere a
// crash point is nothing. OUTBOX_CRASH_AT in the environment names them, separated by commas:
//
//   NAME[:PASS[:ACTION]]     PASS: which time the process gets there, from 1 (1)
//                            ACTION: exit (as by kill -9), sleep=MILLISECONDS, error (fails_here() answers
//                            it)
//
// Any thread; a sleep blocks the thread that passes, as a paused process does.

#include <array>
#include <string_view>

#include "base/result.hpp"

namespace outbox {

enum class CrashPoint {
  consumer_after_fetch,
  consumer_after_claim,
  consumer_mid_handler,
  consumer_before_commit,
  consumer_after_commit,
  consumer_in_rebalance,
  relay_lease_asked,
  relay_leased,
  relay_claim_asked,
  relay_claimed,
  relay_publishing,
  relay_published,
  relay_acked,
  relay_mark_asked,
  relay_marked,
  relay_bury_asked,
  relay_buried,
  relay_hold_asked,
  relay_topic_held,
  relay_rows_held,
  relay_release_asked,
  relay_topic_released,
  relay_pinned,
  relay_repinned,
  relay_asleep,
  relay_lanes_lost,
  relay_give_back_asked,
  relay_given_back,
  relay_stopping,
  relay_stopped,
  once_lane_fenced,
  once_transaction_open,
  once_ledger_written,
  once_transaction_committed,
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
    CrashPointRow{CrashPoint::relay_lease_asked, "relay_lease_asked", "lanes were asked for; no answer yet"},
    CrashPointRow{CrashPoint::relay_leased, "relay_leased", "the lanes are this process's; it has not begun"},
    CrashPointRow{CrashPoint::relay_claim_asked, "relay_claim_asked", "a claim was sent; no answer yet"},
    CrashPointRow{CrashPoint::relay_claimed, "relay_claimed", "rows came; none of them is published"},
    CrashPointRow{CrashPoint::relay_publishing, "relay_publishing",
                  "some rows of a batch are with the producer, the others are not"},
    CrashPointRow{CrashPoint::relay_published, "relay_published",
                  "a batch is with the producer; nothing of it is acknowledged"},
    CrashPointRow{CrashPoint::relay_acked, "relay_acked", "Kafka acknowledged a row; no mark was sent"},
    CrashPointRow{CrashPoint::relay_mark_asked, "relay_mark_asked", "a mark was sent; no answer yet"},
    CrashPointRow{CrashPoint::relay_marked, "relay_marked", "rows are marked; the process has not noted it"},
    CrashPointRow{CrashPoint::relay_bury_asked, "relay_bury_asked",
                  "DEAD and the key's hold were sent; no answer yet"},
    CrashPointRow{CrashPoint::relay_buried, "relay_buried", "the row is DEAD; the process has not noted it"},
    CrashPointRow{CrashPoint::relay_hold_asked, "relay_hold_asked", "a topic's hold was sent; no answer yet"},
    CrashPointRow{CrashPoint::relay_topic_held, "relay_topic_held",
                  "the topic is held; its rows are PENDING"},
    CrashPointRow{CrashPoint::relay_rows_held, "relay_rows_held",
                  "rows behind a hold are HELD; the process has not noted it"},
    CrashPointRow{CrashPoint::relay_release_asked, "relay_release_asked",
                  "a topic's release was sent; no answer yet"},
    CrashPointRow{CrashPoint::relay_topic_released, "relay_topic_released",
                  "the topic is released; the process has not noted it"},
    CrashPointRow{CrashPoint::relay_pinned, "relay_pinned",
                  "a new topic's partition count is recorded; nothing of it is published"},
    CrashPointRow{CrashPoint::relay_repinned, "relay_repinned",
                  "a topic's new partition count is recorded; nothing is published by it"},
    CrashPointRow{CrashPoint::relay_asleep, "relay_asleep", "the asleep flag is set; the last look is ahead"},
    CrashPointRow{CrashPoint::relay_lanes_lost, "relay_lanes_lost",
                  "its time has run out; what the producer queues is not purged"},
    CrashPointRow{CrashPoint::relay_give_back_asked, "relay_give_back_asked",
                  "lanes of a surplus are being given back; no answer yet"},
    CrashPointRow{CrashPoint::relay_given_back, "relay_given_back",
                  "lanes of a surplus are free; the process has not noted it"},
    CrashPointRow{CrashPoint::relay_stopping, "relay_stopping", "told to stop; rows may be in flight"},
    CrashPointRow{CrashPoint::relay_stopped, "relay_stopped",
                  "all lanes are given back; the process has not ended"},
    CrashPointRow{CrashPoint::once_lane_fenced, "once_lane_fenced",
                  "a lane's transactional id is taken; its ledger was not read"},
    CrashPointRow{CrashPoint::once_transaction_open, "once_transaction_open",
                  "messages of a Kafka transaction are on their way"},
    CrashPointRow{CrashPoint::once_ledger_written, "once_ledger_written",
                  "messages and ledger are in Kafka; the transaction is open"},
    CrashPointRow{CrashPoint::once_transaction_committed, "once_transaction_committed",
                  "the transaction is committed; no row of it is marked"},
};

#ifdef OUTBOX_CRASH_POINTS
inline constexpr bool crash_points_compiled = true;
/// Does here what the environment wants of this point at this pass. A text that is no list of crash points
/// ends the process at the first of them, with the reason, so that no test passes for a typing error. True:
/// an error is wanted.
[[nodiscard]] bool fails_here(CrashPoint point) noexcept;
#else
inline constexpr bool crash_points_compiled = false;
[[nodiscard]] inline bool fails_here(CrashPoint) noexcept {
  return false;
}
#endif

/// Where nothing can fail.
inline void crash_here(CrashPoint point) noexcept {
  (void)fails_here(point);
}
/// Where an answer has come: what was asked for is done, and with `error` the answer is lost on its way.
template <class T>
void crash_here(CrashPoint point, Result<T>& answer) {
  if (fails_here(point)) answer = failure(Disposition::in_doubt, "the answer was lost, as a test wants it");
}

}  // namespace outbox
