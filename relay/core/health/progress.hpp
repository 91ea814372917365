#pragma once
// Whether a pipeline makes progress, judged by what was answered and settled and never by the process being
// there. Nothing to do is fine; work that does not move is not. A server that is known to be away is waited
// for, which a restart cannot hasten; work that stands still although both servers are there is stuck, which
// a restart may mend. Pure.

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"

namespace outbox::relay {

/// When each thing last happened. Written by the pipeline where it happens, once a batch.
struct Health {
  MonoTime started{};
  MonoTime lease_answered{};           ///< by the database, whoever has the lanes
  MonoTime look_answered{};            ///< a claim was answered without an error
  std::optional<MonoTime> owing{};     ///< rows are taken on, and none was settled since
  std::optional<MonoTime> draining{};  ///< waits for what is in flight, for new leases or a new producer
  std::optional<MonoTime> postgres_down{};
  std::optional<MonoTime> kafka_down{};
  std::string postgres_error{};  ///< why it is or was down
  std::string kafka_error{};
  std::int64_t postgres_losses = 0;
  std::int64_t kafka_losses = 0;
  std::int64_t partitions_away = 0;  ///< of Kafka: they owe reports and give none
  std::int64_t rows_deferred = 0;    ///< that wait for such partitions, known by their ids alone
  bool deferred_full = false;        ///< no more of them may be: rows of other partitions wait as well
  std::string differs{};             ///< others work and deliver otherwise, so this one waits; empty: none do
  std::string paused{};              ///< why an operator has paused it; empty: nobody has
  /// Exactly once: the lane that cannot send for the longest time, and how many there are.
  struct Stopped {
    std::int64_t lanes = 0;
    std::int16_t lane = 0;
    MonoTime since{};
    std::string why{};
    bool answered = true;  ///< no call into Kafka's client is overdue by far
  };
  std::optional<Stopped> stopped{};
  bool working = false;  ///< lanes are leased, worked, and not paused
  bool stopping = false;

  /// Rows were marked, buried or held. `rows_left`: still in flight.
  void settled(MonoTime now, std::int64_t rows_left) {
    owing = rows_left > 0 ? std::optional{now} : std::nullopt;
  }
  void taken_on(MonoTime now) {
    if (!owing) owing = now;
  }
};

/// Paused is as well as ready: an operator wanted it so.
enum class Verdict { ready, paused, waiting, stuck, stopping };

[[nodiscard]] constexpr bool is_well(Verdict verdict) {
  return verdict == Verdict::ready || verdict == Verdict::paused;
}

struct Judgement {
  Verdict verdict = Verdict::ready;
  std::string reason{};  ///< one line for people; empty where ready
};

struct Patience {
  Millis limit{10'000};    ///< for an answer or a settled row
  Millis look_every{250};  ///< how often a quiet table is looked at
  Millis lease_every{0};   ///< how often leases are asked for
};

/// "lane 3 has sent nothing for 13 s: …", bounded.
[[nodiscard]] std::string sentence(const Health::Stopped& stopped, MonoTime now);

[[nodiscard]] Judgement judge(const Health& health, MonoTime now, const Patience& patience);

[[nodiscard]] std::string_view to_string(Verdict verdict) noexcept;

}  // namespace outbox::relay
