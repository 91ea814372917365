#include "relay/core/health/histogram.hpp"

#include <doctest/doctest.h>

using namespace outbox;
using relay::Histogram;

namespace {

std::size_t bucket_of(Micros took) {
  Histogram h;
  h.observe(took);
  for (std::size_t i = 0; i < h.counts().size(); ++i)
    if (h.counts()[i] == 1) return i;
  return h.counts().size();
}

}  // namespace

TEST_CASE("a bucket holds what its bound is, and the next one what lies a microsecond beyond") {
  for (std::size_t i = 0; i < Histogram::bounds; ++i) {
    CHECK(bucket_of(Histogram::bound(i)) == i);
    CHECK(bucket_of(Histogram::bound(i) + Micros{1}) == i + 1);
  }
  CHECK(bucket_of(Micros{0}) == 0);
  CHECK(bucket_of(std::chrono::hours{9}) == Histogram::bounds);
}

TEST_CASE("a time below zero counts as zero, in the sum too") {
  Histogram h;
  h.observe(Micros{-5'000'000});
  CHECK(h.counts()[0] == 1);
  CHECK(h.sum() == Micros{0});
}

TEST_CASE("count and sum are of everything observed, also beyond the last bound") {
  Histogram h;
  h.observe(Micros{100});
  h.observe(std::chrono::seconds{100});
  CHECK(h.count() == 2);
  CHECK(h.sum() == Micros{100'000'100});
}

TEST_CASE("a quantile lies inside the bucket of its observation") {
  Histogram h;
  CHECK(h.quantile(0.5) == Micros{0});
  for (int i = 0; i < 99; ++i) h.observe(Micros{3000});
  h.observe(Micros{50'000});
  CHECK(h.quantile(0.5) > Micros{2000});
  CHECK(h.quantile(0.5) <= Micros{4000});
  CHECK(h.quantile(1.0) > Micros{32'000});
  CHECK(h.quantile(1.0) <= Micros{64'000});
}

TEST_CASE("since() leaves only what came after the copy") {
  Histogram h;
  h.observe(Micros{3000});
  const Histogram before = h;
  h.observe(Micros{50'000});
  CHECK(h.since(before).count() == 1);
  CHECK(h.since(before).sum() == Micros{50'000});
  CHECK(h.since(before).quantile(0.5) > Micros{32'000});
}
