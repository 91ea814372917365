#pragma once
// What was measured: each figure has a value a round, and stands for their median.

#include <map>
#include <string>
#include <vector>

namespace bench {

class Figures {
 public:
  void add(const std::string& name, double value);  ///< says it on standard error as well
  [[nodiscard]] bool has(const std::string& name) const { return rounds_.contains(name); }
  [[nodiscard]] double median(const std::string& name) const;  ///< throws where there is none
  [[nodiscard]] const std::map<std::string, std::vector<double>>& rounds() const { return rounds_; }

  /// What could not be measured, and why.
  void fail(const std::string& what, const std::string& why);
  [[nodiscard]] const std::map<std::string, std::string>& failures() const { return failures_; }

  /// What makes figures doubtful: said at once, and again at the end.
  void warn(const std::string& warning);
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

  static void say(const std::string& line);  ///< progress, on standard error

 private:
  std::map<std::string, std::vector<double>> rounds_;
  std::map<std::string, std::string> failures_;
  std::vector<std::string> warnings_;
};

/// The value below which `part` (0..1) of `values` lie; of none: 0.
[[nodiscard]] double quantile(std::vector<double> values, double part);

}  // namespace bench
