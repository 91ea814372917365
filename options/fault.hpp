#pragma once
// What is wrong in a configuration file, and where. All faults of a file are collected before any is shown.

#include <string>
#include <vector>

namespace outbox::config {

/// A place in the file, counted from 1; line 0: the file as a whole.
struct Place {
  int line = 0;
  int column = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

struct Fault {
  Place place;
  std::string path;     ///< "pipelines.payments.source.mode"; empty where no option is concerned
  std::string message;  ///< the rest of the sentence; never a secret's value
  friend bool operator==(const Fault&, const Fault&) = default;

  /// "outboxd.yaml:4:17: source.mode: `notfy` is none of poll, notify; did you mean notify?"
  [[nodiscard]] std::string text(const std::string& file) const;
};

using Faults = std::vector<Fault>;

}  // namespace outbox::config
