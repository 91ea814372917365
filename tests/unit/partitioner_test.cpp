#include "relay/core/kafka/partitioner.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

using namespace outbox;
using namespace outbox::relay;

namespace {

// Printed by Java itself: Utils.murmur2 and Utils.toPositive of kafka-clients 4.4.0, keys as UTF-8. The six
// marked ones are also the published vectors of Kafka's own UtilsTest.
struct Vector {
  std::string key;
  std::int32_t hash;
  std::int32_t of_3, of_12, of_1000;
};
const std::vector<Vector> vectors{
    {"", 275646681, 0, 9, 681},
    {"a", -1563381124, 1, 4, 524},
    {"ab", 316155434, 2, 2, 434},
    {"abc", 479470107, 0, 3, 107},  // published
    {"abcd", -1323649548, 2, 8, 100},
    {"21", -973932308, 0, 0, 340},                                               // published
    {"foobar", -790332482, 0, 6, 166},                                           // published
    {"a-little-bit-long-string", -985981536, 2, 8, 112},                         // published
    {"a-little-bit-longer-string", -1486304829, 2, 11, 819},                     // published
    {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971, 2, 5, 677},  // published
    {"ACC-000017", -663349261, 1, 7, 387},
    {"0", 971027396, 2, 8, 396},
    {"-1", 1531782027, 0, 3, 27},
    {"\u00e9", 186971271, 0, 3, 271},
    {"\u65e5\u672c\u8a9e", 1431860170, 1, 10, 170},
    {"\x01\x1f\x7f", 764220678, 0, 6, 678},
    {std::string(1000, 'x'), -1068453602, 0, 6, 46},
};

}  // namespace

TEST_CASE("a key's hash and partition are those of Kafka's Java client") {
  for (const auto& v : vectors) {
    CAPTURE(v.key);
    CHECK(static_cast<std::int32_t>(murmur2(v.key)) == v.hash);
    CHECK(partition_of_key(v.key, 1).value == 0);
    CHECK(partition_of_key(v.key, 3).value == v.of_3);
    CHECK(partition_of_key(v.key, 12).value == v.of_12);
    CHECK(partition_of_key(v.key, 1000).value == v.of_1000);
  }
}

TEST_CASE("bytes above 127 are hashed unsigned, as in Java") {
  std::string bytes(256, '\0');
  std::iota(bytes.begin(), bytes.end(), '\0');
  CHECK(static_cast<std::int32_t>(murmur2(bytes)) == -1948347274);
}

TEST_CASE("a hundred thousand account numbers go where Java sends them") {
  std::int64_t sum = 0;  // wraps round in Java; so it does here, unsigned
  for (int i = 0; i < 100'000; ++i) {
    std::array<char, 16> key{};
    std::snprintf(key.data(), key.size(), "ACC-%06d", i);
    const auto next = static_cast<std::uint64_t>(sum) * 31;
    sum =
        static_cast<std::int64_t>(next + static_cast<std::uint64_t>(partition_of_key(key.data(), 48).value));
  }
  CHECK(sum == 5799430669751061835);
}

TEST_CASE(
    "a message without a key goes by its msg_id, so a repeat meets its first copy, and an empty key is a "
    "key") {
  Message message;
  for (std::size_t i = 0; i < 16; ++i) message.msg_id.bytes[i] = static_cast<std::uint8_t>(i * 17);
  CHECK(partition_of(message, 12).value == 2);  // Java's hash of the same 16 bytes
  message.key = "";
  CHECK(partition_of(message, 12).value == 9);
}

TEST_CASE("messages without a key are spread evenly") {
  constexpr int messages = 12'000;
  std::array<int, 12> count{};
  Message message;
  for (int i = 0; i < messages; ++i) {
    message.msg_id.bytes[14] = static_cast<std::uint8_t>(i >> 8);
    message.msg_id.bytes[15] = static_cast<std::uint8_t>(i);
    ++count[static_cast<std::size_t>(partition_of(message, 12).value)];
  }
  for (const int n : count) {
    CHECK(n > 850);
    CHECK(n < 1150);
  }
}

TEST_CASE("a row names its partition in a header, and what is no partition of the topic is said") {
  const Header headers[] = {{"a", "1"}, {"part", "2"}};
  Message message;
  message.headers = headers;
  CHECK_FALSE(partition_asked(message, "", 3).partition);
  CHECK_FALSE(partition_asked(message, "none", 3).partition);
  CHECK(partition_asked(message, "part", 3).partition == Partition{2});
  CHECK(partition_asked(message, "part", 2).fault ==
        "header part asks for partition '2', the topic has 0 to 1");
  for (const char* wrong : {"", "-1", "+1", "1 ", " 1", "1.0", "x", "99999999999999999999"}) {
    CAPTURE(wrong);
    const Header odd[] = {{"part", wrong}};
    message.headers = odd;
    CHECK_FALSE(partition_asked(message, "part", 3).fault.empty());
  }
}

TEST_CASE("a row's column that names a partition goes before header and key, and no other number is taken") {
  const Header headers[] = {{"part", "2"}};
  Message message;
  message.headers = headers;
  message.partition = Partition{1};
  CHECK(partition_asked(message, "", 3).partition == Partition{1});
  CHECK(partition_asked(message, "part", 3).partition == Partition{1});
  for (const std::int32_t wrong : {-1, 3, 2147483647}) {
    message.partition = Partition{wrong};
    CHECK_FALSE(partition_asked(message, "part", 3).partition);
    CHECK(partition_asked(message, "part", 3).fault ==
          "source.partition_column asks for partition '" + std::to_string(wrong) + "', the topic has 0 to 2");
  }
}
