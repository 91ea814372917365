#pragma once
// From a row's topic to Kafka's: whether the row may go to it, and what Kafka calls it. Holds, pins and order
// go by the row's topic; only the broker's adapter knows the other name. Pure; any thread.

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace outbox::relay {

/// A name with at most one `*`, which stands for anything, also for nothing.
struct TopicPattern {
  std::string before;
  std::string after;
  bool open = false;  ///< it has a `*`

  [[nodiscard]] bool fits(std::string_view name) const;
};

struct TopicRewrite {
  TopicPattern from;
  TopicPattern to;
};

struct TopicRules {
  std::string allow = "*";  ///< "payment.*, orders"
  std::string prefix{};
  std::string rewrite{};  ///< "audit.*=eu.audit.*, old=new": the first that fits; its `*` is carried over
};

class TopicMap {
 public:
  static constexpr std::size_t patterns_max = 256;

  /// Every topic is allowed and keeps its name.
  TopicMap() = default;
  /// Errors: fatal: which entry of which rule is none.
  [[nodiscard]] static Result<TopicMap> make(const TopicRules& rules);

  /// A topic by Kafka's name that no row may go to: a ledger of this process.
  void reserve(std::string kafka_name) { reserved_.insert(std::move(kafka_name)); }
  /// Why no row of that topic may be sent: the allow list, or where it would end; nullopt: it may.
  [[nodiscard]] std::optional<std::string_view> refusal(std::string_view topic) const;
  /// True: to_kafka() answers what it is given.
  [[nodiscard]] bool plain() const { return prefix_.empty() && rewrites_.empty(); }
  /// Shape: rewritten, then with the prefix before it. It may be no name that Kafka takes.
  [[nodiscard]] std::string to_kafka(std::string_view topic) const;

 private:
  std::vector<TopicPattern> allow_;  // empty: any
  std::string prefix_;
  std::vector<TopicRewrite> rewrites_;
  std::set<std::string, std::less<>> reserved_;
};

}  // namespace outbox::relay
