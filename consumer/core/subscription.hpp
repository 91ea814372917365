#pragma once
// What the consumer's loop needs of Kafka: one member of one group. KafkaSubscription is the real one; the
// tests' stand-in is FakeSubscription, and one suite runs over both. Thread: the one that calls poll();
// events are called from within poll() and close() only.

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "consumer/core/backlog.hpp"

namespace outbox {

enum class Revoked {
  handed_over,  ///< to another member, after on_revoked returns: what is done may still be committed
  lost,         ///< it is another's already: commit nothing
};
enum class Commit { soon, now };

class Subscription {
 public:
  /// Where partitions start, of those that the database knows.
  using Starts = std::map<PartitionId, std::int64_t>;
  struct Events {
    /// Asked before partitions are assigned; may be empty. Where it fails they are given up, and poll() fails
    /// with that.
    std::function<Result<Starts>(std::span<const PartitionId>)> starts{};
    std::function<void(std::span<const PartitionId>)> on_assigned;
    std::function<void(std::span<const PartitionId>, Revoked)> on_revoked;
    std::function<void(std::string_view)> log;
  };
  virtual ~Subscription() = default;
  virtual void start(Events events) = 0;

  /// Shape: the next record of a partition that is ours and not paused; nullopt where none came within
  /// `timeout`. Each partition's records come in order, starting at the committed offset. Errors: fatal: the
  /// loop can't go on, the text says why. Everything else is waited out.
  [[nodiscard]] virtual Result<std::optional<Fetched>> poll(Millis timeout) = 0;
  /// Partitions that are not ours are ignored.
  virtual void pause(std::span<const PartitionId> partitions) = 0;
  virtual void resume(std::span<const PartitionId> partitions) = 0;
  /// The offset behind the last record that Kafka told of, from memory; nullopt: it has not yet.
  [[nodiscard]] virtual std::optional<std::int64_t> end_of(const PartitionId& partition) = 0;
  /// now: blocks until the coordinator has answered, and says whether it took them. soon: always succeeds.
  virtual Status commit(std::span<const NextOffset> offsets, Commit when) = 0;
  /// Leaves the group and joins it again: everything is revoked and assigned again, by later calls of poll().
  virtual void rejoin() = 0;
  /// Leaves the group; what is still assigned is revoked first. Nothing may be called afterwards.
  virtual void close() = 0;
};

}  // namespace outbox
