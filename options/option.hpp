#pragma once
// A row of an option table: what is known of an option, and the way to and from its member. Parsing, checking
// and everything that is generated walk a table of these: an option is added by one row and one member.
// Place: relay/config/options.cpp and consumer/config/options.cpp are such tables. Constant; any thread.

#include <chrono>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "options/option_value.hpp"

namespace outbox::config {

enum class Secret {
  no,
  uri,  ///< may hold a password: shown masked, may be read from a file
};
enum class Reload {
  restart,  ///< a change takes effect at the next start
  live,     ///< a change takes effect when the file is read again
};

/// What is known of an option without a Target at hand.
struct OptionFacts {
  std::string_view path{};  ///< "source.poll_interval"
  Kind kind = Kind::text;
  std::string_view fallback{};  ///< as people write it; empty and `required`: there is none
  std::string_view lowest{};    ///< bounds as people write them; of text: bytes
  std::string_view highest{};
  std::string_view
      choices{};  ///< "poll|notify", in the order of the enum; of a duration, the word for endless
  bool required = false;
  Secret secret = Secret::no;
  Reload reload = Reload::restart;
  std::string_view example{};        ///< of a required one, for the sample
  std::string_view doc{};            ///< whole sentences, for docs and sample
  std::string_view fallback_said{};  ///< what the docs say where the default is no fixed text
};

/// Facts, and the way to and from its member of Target.
template <class Target>
struct Option {
  OptionFacts facts;
  void (*store)(Target&, const Value&);
  Value (*load)(const Target&);
};

/// Shape: the facts of a table, in its order.
template <class Options>
[[nodiscard]] std::vector<const OptionFacts*> facts_of(const Options& options) {
  std::vector<const OptionFacts*> out;
  for (const auto& option : options) out.push_back(&option.facts);
  return out;
}

/// "2 to 8" and the like, "poll, notify", "at most 128 characters"; empty: anything.
[[nodiscard]] std::string bounds_said(const OptionFacts& facts);

/// The way through nested structs: member_at<&Pipeline::source, &Source::mode>(pipeline) is
/// pipeline.source.mode.
template <auto First, auto... Rest>
auto& member_at(auto& target) {
  if constexpr (sizeof...(Rest) == 0) {
    return target.*First;
  } else {
    return member_at<Rest...>(target.*First);
  }
}

template <class T>
inline constexpr bool is_time = false;
template <class Count, class Period>
inline constexpr bool is_time<std::chrono::duration<Count, Period>> = true;

/// Durations of any unit are held in milliseconds; what is finer than the member's unit is dropped, so that
/// an option's lowest must be a whole one.
template <class Target, auto... Path>
void store_option(Target& target, const Value& value) {
  auto& member = member_at<Path...>(target);
  using Member = std::remove_cvref_t<decltype(member)>;
  if constexpr (std::is_same_v<Member, std::string>) {
    member = std::get<std::string>(value);
  } else if constexpr (is_time<Member>) {
    member = std::chrono::duration_cast<Member>(std::chrono::milliseconds{std::get<std::int64_t>(value)});
  } else {
    member = static_cast<Member>(std::get<std::int64_t>(value));
  }
}

template <class Target, auto... Path>
Value load_option(const Target& target) {
  const auto& member = member_at<Path...>(target);
  using Member = std::remove_cvref_t<decltype(member)>;
  if constexpr (std::is_same_v<Member, std::string>) {
    return member;
  } else if constexpr (is_time<Member>) {
    return std::int64_t{std::chrono::duration_cast<std::chrono::milliseconds>(member).count()};
  } else {
    return static_cast<std::int64_t>(member);
  }
}

template <class Target, auto... Path>
constexpr Option<Target> option_at(OptionFacts facts) {
  return {facts, store_option<Target, Path...>, load_option<Target, Path...>};
}

}  // namespace outbox::config
