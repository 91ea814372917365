#include "relay/shell/topics.hpp"

#include <algorithm>
#include <utility>

#include "base/crash_point.hpp"
#include "relay/core/message/text.hpp"

namespace outbox::relay {
namespace {

constexpr Millis read_holds_every{10'000};
constexpr Millis read_holds_again{1000};
constexpr Millis forget_every{1000};
constexpr Millis unsure_again_after{500};

HoldTarget target_of(const Topic& topic) {
  return {HoldScope::topic, topic.name, {}};
}

}  // namespace

std::string_view to_string(Topic::State state) noexcept {
  switch (state) {
    case Topic::State::unknown:
      return "unknown";
    case Topic::State::looking_up:
      return "looking_up";
    case Topic::State::pinning:
      return "pinning";
    case Topic::State::ready:
      return "ready";
    case Topic::State::draining:
      return "draining";
    case Topic::State::repinning:
      return "repinning";
    case Topic::State::holding:
      return "holding";
  }
  return "unknown";
}

bool Topic::idle() const {
  const bool settled = state == State::ready || state == State::unknown;
  return settled && waiting.empty() && in_flight == 0 && busy.empty() &&
         stalled_partitions.away_count() == 0 && !refreshing && !held && !probing;
}

void Topic::passed() {
  refused.reset();
  relapse.reset();
  was_held = false;
}

void Topic::spread_over(std::int32_t count) {
  if (count != partitions) stalled_partitions.close_where_any();
  partitions = count;
}

Topic& Topics::of(std::string_view name) {
  if (latest_ != nullptr && latest_->name == name) return *latest_;
  const auto [at, added] = numbers_.try_emplace(std::string{name}, 0);
  if (added) {
    if (free_numbers_.empty()) {
      free_numbers_.push_back(static_cast<std::uint32_t>(topics_.size()));
      topics_.emplace_back();
    }
    at->second = free_numbers_.back();
    free_numbers_.pop_back();
    topics_[at->second] = std::make_unique<Topic>(at->first, at->second);
  }
  latest_ = topics_[at->second].get();
  return *latest_;
}

// The first ones stay, so that a series that was shown once is shown always.
void Topics::forget_idle(MonoTime now) {
  if (numbers_.size() <= bench_.options.topics_max || now < forget_at_) return;
  forget_at_ = now + forget_every;
  for (std::size_t number = bench_.options.topics_max; number < topics_.size(); ++number) {
    const auto& topic = topics_[number];
    if (!topic || !topic->idle() || now < topic->careful_until || now < topic->rests_until) continue;
    if (topic->stalled_partitions.any_closed(bench_.plan.oldest_open())) continue;
    forgotten_.published += topic->counters.published;
    forgotten_.acked += topic->counters.acked;
    forgotten_.dead += topic->counters.dead;
    free_numbers_.push_back(static_cast<std::uint32_t>(number));
    numbers_.erase(topic->name);
    topics_[number].reset();
  }
  latest_ = nullptr;
}

void Topics::rest(Topic& topic) {
  const MonoTime now = bench_.loop.now();
  if (now >= topic.rests_until) topic.rests_until = now + topic.refused.next();
}

bool Topics::ready(Topic& topic, MonoTime now) {
  if (now < topic.rests_until) return false;
  if (topic.state == Topic::State::ready) return !topic.unsure_since;
  if (topic.state == Topic::State::unknown && now >= topic.refresh_at) look_up(topic);
  if (topic.state == Topic::State::draining && topic.in_flight == 0) repin(topic);
  return false;
}

bool Topics::look_again(Topic& topic, const Row& row) {
  if (topic.facts_at >= row.batch->admitted_at) return false;
  if (!topic.unsure_since) topic.unsure_since = bench_.loop.now();
  bench_.schedule_turn();
  return true;
}

void Topics::look_up(Topic& topic) {
  topic.state = Topic::State::looking_up;
  bench_.broker.look_up(topic.name, [this, &topic, asked = bench_.loop.now()](Result<TopicFacts> facts) {
    looked_up(topic, std::move(facts), asked);
    bench_.schedule_turn();
  });
}

void Topics::looked_up(Topic& topic, Result<TopicFacts> facts, MonoTime asked) {
  if (!facts) return later(topic, facts.error(), "topic_look_up");
  topic.retry.reset();
  if (std::exchange(topic.failing, false)) bench_.log.info("topic_recovered", {{"topic", topic.name}});
  if (facts->state != TopicState::present) return hold(topic, facts->reason);
  take_facts(topic, *facts, asked);
  pin(topic);
}

void Topics::take_facts(Topic& topic, const TopicFacts& facts, MonoTime asked) {
  topic.facts_at = asked;
  topic.partitions_seen = facts.partitions;
  topic.message_bytes_max = facts.message_bytes_max;
  const bool assumed = !facts.reason.empty();
  if (assumed && !topic.limit_assumed)
    bench_.log.warn("topic_limit_assumed",
                    {{"topic", topic.name},
                     {"reason", facts.reason},
                     {"next", std::to_string(facts.message_bytes_max) + " bytes are assumed"}});
  topic.limit_assumed = assumed;
  topic.refresh_at = bench_.loop.now() + bench_.options.facts_fresh_for;
}

void Topics::later(Topic& topic, const Error& error, const char* what) {
  topic.state = Topic::State::unknown;
  topic.refresh_at = bench_.loop.now() + topic.retry.next();
  if (!std::exchange(topic.failing, true))
    bench_.log.warn(what, {{"topic", topic.name}, {"error", error.text()}, {"next", "tried again"}});
}

void Topics::pin(Topic& topic) {
  topic.state = Topic::State::pinning;
  bench_.source.pin(topic.name, topic.partitions_seen, [this, &topic](Result<std::int32_t> pinned) {
    crash_here(CrashPoint::relay_pinned, pinned);
    if (!pinned) {
      later(topic, pinned.error(), "topic_pin");
    } else {
      if (topic.in_flight == 0) topic.spread_over(*pinned);
      const bool agreed = topic.partitions == *pinned && *pinned == topic.partitions_seen;
      topic.state = agreed ? Topic::State::ready : Topic::State::draining;
    }
    bench_.schedule_turn();
  });
}

void Topics::repin(Topic& topic) {
  topic.state = Topic::State::repinning;
  bench_.source.repin(topic.name, topic.partitions_seen, [this, &topic](Status status) {
    crash_here(CrashPoint::relay_repinned, status);
    if (!status) {
      later(topic, status.error(), "topic_repin");
    } else {
      bench_.log.info("topic_partitions",
                      {{"topic", topic.name}, {"was", topic.partitions}, {"now", topic.partitions_seen}});
      topic.spread_over(topic.partitions_seen);
      topic.state = Topic::State::ready;
    }
    bench_.schedule_turn();
  });
}

void Topics::unusable(Topic& topic, const std::string& reason) {
  if (topic.state != Topic::State::holding) hold(topic, reason);
}

void Topics::hold(Topic& topic, const std::string& reason) {
  topic.state = Topic::State::holding;
  bench_.blocklist.block(target_of(topic));
  for (Row* row : std::exchange(topic.waiting, {})) bench_.drop(*row);
  const std::string stored = bounded_text("kafka: " + reason, last_error_bytes_max);
  bench_.source.hold(target_of(topic), stored, [this, &topic, reason](Status status) {
    crash_here(CrashPoint::relay_topic_held, status);
    if (!status) {
      bench_.blocklist.unblock(target_of(topic));
      topic.stalled_partitions.close(
          bench_.plan.newest());  // its rows were left, and claims under way left them out
      later(topic, status.error(), "topic_hold");
    } else {
      bench_.blocklist.recorded(target_of(topic), bench_.plan.newest());
      topic.state = Topic::State::unknown;
      if (!std::exchange(topic.held, true))
        bench_.log.warn("topic_held",
                        {{"topic", topic.name}, {"reason", reason}, {"next", "probed; other topics go on"}});
      topic.probe_at = bench_.loop.now() + until_probe(topic);
    }
    bench_.schedule_turn();
  });
  crash_here(CrashPoint::relay_hold_asked);
}

Millis Topics::until_probe(Topic& topic) {
  return std::max(topic.probe.next(), topic.was_held ? topic.relapse.next() : Millis{0});
}

void Topics::begin() {
  read_holds_at_ = bench_.loop.now();
  for (const auto& topic : topics_)
    if (topic) topic->unsure_since = bench_.loop.now();
}

// Again and again, since a hold can be there that this relay does not know of: its write's reply was lost, or
// an owner that had lost its lease wrote it late.
void Topics::read_holds() {
  reading_holds_ = true;
  bench_.source.held_topics([this](const Result<std::vector<std::string>>& names) {
    reading_holds_ = false;
    read_holds_at_ = bench_.loop.now() + (names ? read_holds_every : read_holds_again);
    for (const std::string& name : names.value_or(std::vector<std::string>{})) {
      Topic& topic = of(name);
      if (std::exchange(topic.held, true)) continue;
      // Held again by another instance, after this one had let it go: not let go again at once.
      topic.probe_at = bench_.loop.now() + (topic.was_held ? topic.relapse.next() : Millis{0});
    }
    bench_.schedule_turn();
  });
}

void Topics::pump(MonoTime now) {
  wake_at_ = MonoTime::max();
  if (!reading_holds_ && now >= read_holds_at_) read_holds();
  if (!reading_holds_) wake_at_ = read_holds_at_;
  for (const auto& entry : topics_) {
    if (!entry) continue;
    Topic& topic = *entry;
    if (topic.held && !topic.probing) {
      if (now < topic.probe_at)
        wake_at_ = std::min(wake_at_, topic.probe_at);
      else if (probes_ < bench_.options.probes_max)
        probe(topic);
    }
    refresh(topic, now);
    if (topic.state == Topic::State::unknown && !topic.waiting.empty())
      wake_at_ = std::min(wake_at_, topic.refresh_at);
    if (now < topic.rests_until && !topic.waiting.empty()) wake_at_ = std::min(wake_at_, topic.rests_until);
    if (topic.state == Topic::State::draining && topic.in_flight == 0) repin(topic);
    tell_drain(topic);
  }
  forget_idle(now);
}

// What an away partition owes may be of any key, and a key must not go on in another partition before it is known.
void Topics::tell_drain(Topic& topic) {
  const bool waits = topic.state == Topic::State::draining && topic.stalled_partitions.away_count() > 0;
  if (std::exchange(topic.drain_told, waits) || !waits) return;
  bench_.log.warn(
      "topic_partitions_wait",
      {{"topic", topic.name},
       {"was", topic.partitions},
       {"now", topic.partitions_seen},
       {"partitions_away", topic.stalled_partitions.away_count()},
       {"next", "all of its rows wait until every partition has answered for what was sent to it"}});
}

void Topics::refresh(Topic& topic, MonoTime now) {
  const bool stale = topic.state == Topic::State::ready && !topic.refreshing &&
                     topic.in_flight + std::ssize(topic.waiting) > 0;
  if (!stale) return;
  if (now < (topic.unsure_since ? topic.unsure_again : topic.refresh_at)) {
    if (topic.unsure_since) wake_at_ = std::min(wake_at_, topic.unsure_again);
    return;
  }
  topic.refreshing = true;
  topic.unsure_again = now + unsure_again_after;
  bench_.broker.look_up(topic.name, [this, &topic, asked = now](Result<TopicFacts> facts) {
    topic.refreshing = false;
    const bool awaited = topic.unsure_since.has_value();
    if (facts && topic.unsure_since <= asked) topic.unsure_since.reset();
    if (facts && facts->state == TopicState::present && topic.state == Topic::State::ready) {
      take_facts(topic, *facts, asked);
      if (topic.partitions_seen != topic.partitions) topic.state = Topic::State::draining;
    } else if (facts && awaited && topic.state == Topic::State::ready) {
      hold(topic, facts->reason);  // nothing of it may be published that could be refused, and so tell
    } else {
      topic.refresh_at = bench_.loop.now() + bench_.options.facts_fresh_for;
    }
    bench_.schedule_turn();
  });
}

void Topics::probe(Topic& topic) {
  topic.probing = true;
  probes_ += 1;
  bench_.broker.look_up(topic.name, [this, &topic](Result<TopicFacts> facts) {
    probes_ -= 1;
    if (facts && facts->state == TopicState::present) return release(topic);
    topic.probing = false;
    topic.probe_at = bench_.loop.now() + topic.probe.next();
    bench_.schedule_turn();
  });
}

void Topics::release(Topic& topic) {
  bench_.source.release(target_of(topic), [this, &topic](Result<Release> released) {
    crash_here(CrashPoint::relay_topic_released, released);
    topic.probing = false;
    if (released) {
      topic.held = false;
      topic.was_held = true;
      topic.probe.reset();
      topic.refresh_at = bench_.loop.now();
      if (*released == Release::done)
        bench_.log.info("topic_released", {{"topic", topic.name}});
      else
        bench_.log.info("topic_stays_on_hold",
                        {{"topic", topic.name},
                         {"next", "Kafka has it; an operator's hold stays until `outboxd resume`"}});
    } else {
      topic.probe_at = bench_.loop.now() + topic.probe.next();
    }
    bench_.schedule_turn();
  });
  crash_here(CrashPoint::relay_release_asked);
}

}  // namespace outbox::relay
