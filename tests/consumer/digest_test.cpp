#include "base/digest.hpp"

#include <doctest/doctest.h>

#include <string>

#include "outbox/foreign_id.hpp"

using namespace outbox;

TEST_CASE("sha256 agrees with the standard's examples, at every padding") {
  CHECK(hex(sha256("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex(sha256("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(hex(sha256(std::string(1'000'000, 'a'))) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  CHECK(hex(sha256(std::string(55, 'x'))) ==
        "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072");
  CHECK(hex(sha256(std::string(56, 'x'))) ==
        "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e");
  CHECK(hex(sha256(std::string(63, 'x'))) ==
        "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2");
  CHECK(hex(sha256(std::string(64, 'x'))) ==
        "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c");
  CHECK(hex(sha256(std::string(65, 'x'))) ==
        "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9");
  CHECK(hex(sha256(std::string(119, 'x'))) ==
        "000b48d4edf0fa7bee3c6236ecd2785baa5db4eeb8bb54341b029e0d9fa5fb0c");
  CHECK(hex(sha256(std::string(120, 'x'))) ==
        "13f05a0b594787f5ecd315edc96141bd3243203d1b7d4f0836f37308b276ba98");
}

TEST_CASE("a tombstone, an empty body and thirty-two zero bytes have different hashes") {
  CHECK(payload_sha256(std::nullopt) == Sha256{});
  CHECK(payload_sha256("") == sha256(""));
  CHECK(payload_sha256("") != payload_sha256(std::nullopt));
}

TEST_CASE("a foreign id is the uuid version 5 of its text, the same in every language") {
  CHECK(to_string(foreign_id("order-4711")) == "4348c573-eacf-58b5-a63b-eddb5d647f00");
  CHECK(to_string(foreign_id("")) == "699917cf-f35d-568a-b3c7-fc8d03872fe0");
  CHECK(to_string(foreign_id("/orders", "4711")) == "f69d8b64-e48e-56a4-9935-d08e7a42caf3");
  CHECK(foreign_id("a", "b") != foreign_id("b", "a"));
}
