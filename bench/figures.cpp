#include "bench/figures.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>

namespace bench {

void Figures::add(const std::string& name, double value) {
  rounds_[name].push_back(value);
  std::fprintf(stderr, "   %-40s %14.3f\n", name.c_str(), value);
}

double Figures::median(const std::string& name) const {
  std::vector<double> values = rounds_.at(name);
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void Figures::fail(const std::string& what, const std::string& why) {
  failures_[what] = why;
  say(what + " was not measured: " + why);
}

void Figures::warn(const std::string& warning) {
  warnings_.push_back(warning);
  say(warning);
}

void Figures::say(const std::string& line) {
  std::cerr << "== " << line << '\n';
}

double quantile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto at = static_cast<std::size_t>(std::lround(part * static_cast<double>(values.size() - 1)));
  return values[at];
}

}  // namespace bench
