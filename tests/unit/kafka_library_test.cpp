#include "relay/core/kafka_library.hpp"

#include <doctest/doctest.h>

using outbox::relay::judge_librdkafka;
using outbox::relay::LibraryFit;

TEST_CASE("librdkafka 2.2 to 2.4 is refused, older ones than 2.0.2 too, the rest is taken") {
  CHECK(judge_librdkafka(0x020001ff).fit == LibraryFit::unfit);
  CHECK(judge_librdkafka(0x020002ff).fit == LibraryFit::limited);
  CHECK(judge_librdkafka(0x020103ff).fit == LibraryFit::limited);
  CHECK(judge_librdkafka(0x02020000).fit == LibraryFit::unfit);
  CHECK(judge_librdkafka(0x020401ff).fit == LibraryFit::unfit);
  CHECK(judge_librdkafka(0x020500ff).fit == LibraryFit::limited);
  CHECK(judge_librdkafka(0x020601ff).fit == LibraryFit::fit);
  CHECK(judge_librdkafka(0x030000ff).fit == LibraryFit::fit);
}
