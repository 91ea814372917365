#include "base/digest.hpp"

#include <bit>
#include <cstring>

namespace outbox {
namespace {

constexpr std::size_t block_bytes = 64;

constexpr std::array<std::uint32_t, 64> round_constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t read_word(const unsigned char* at) {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 |
         std::uint32_t{at[3]};
}

struct Sha256Rounds {
  static constexpr std::array<std::uint32_t, 8> initial = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                                           0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  static void absorb(std::array<std::uint32_t, 8>& state, const unsigned char* block) {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < 16; ++i) w[i] = read_word(block + 4 * i);
    for (std::size_t i = 16; i < 64; ++i) {
      const auto s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
      const auto s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t i = 0; i < 64; ++i) {
      const auto s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const auto t1 = h + s1 + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
      const auto s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const auto t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<std::uint32_t, 8> add = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i) state[i] += add[i];
  }
};

struct Sha1Rounds {
  static constexpr std::array<std::uint32_t, 5> initial = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
                                                           0xc3d2e1f0};
  static void absorb(std::array<std::uint32_t, 5>& state, const unsigned char* block) {
    std::array<std::uint32_t, 80> w{};
    for (std::size_t i = 0; i < 16; ++i) w[i] = read_word(block + 4 * i);
    for (std::size_t i = 16; i < 80; ++i) w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    auto [a, b, c, d, e] = state;
    for (std::size_t i = 0; i < 80; ++i) {
      const auto mix = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999
                       : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
                       : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                                : (b ^ c ^ d) + 0xca62c1d6;
      const auto next = std::rotl(a, 5) + mix + e + w[i];
      e = d, d = c, c = std::rotl(b, 30), b = a, a = next;
    }
    const std::array<std::uint32_t, 5> add = {a, b, c, d, e};
    for (std::size_t i = 0; i < 5; ++i) state[i] += add[i];
  }
};

/// Both hashes pad alike: a one bit, zeros, and the length in bits.
template <class Rounds>
auto absorb_all(std::string_view bytes) {
  auto state = Rounds::initial;
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t left = bytes.size();
  for (; left >= block_bytes; left -= block_bytes, at += block_bytes) Rounds::absorb(state, at);
  std::array<unsigned char, 2 * block_bytes> tail{};
  if (left > 0) std::memcpy(tail.data(), at, left);
  tail[left] = 0x80;
  const std::size_t tail_bytes = left + 9 <= block_bytes ? block_bytes : 2 * block_bytes;
  std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  for (std::size_t i = 1; i <= 8; ++i, bits >>= 8)
    tail[tail_bytes - i] = static_cast<unsigned char>(bits & 0xff);
  for (std::size_t done = 0; done < tail_bytes; done += block_bytes)
    Rounds::absorb(state, tail.data() + done);
  return state;
}

template <class Digest, class State>
Digest to_bytes(const State& state) {
  Digest digest{};
  for (std::size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::uint8_t>(state[i / 4] >> (24 - 8 * (i % 4)) & 0xff);
  return digest;
}

}  // namespace

Sha256 sha256(std::string_view bytes) {
  return to_bytes<Sha256>(absorb_all<Sha256Rounds>(bytes));
}
Sha1 sha1(std::string_view bytes) {
  return to_bytes<Sha1>(absorb_all<Sha1Rounds>(bytes));
}

Sha256 payload_sha256(std::optional<std::string_view> body) {
  return body ? sha256(*body) : Sha256{};
}

std::string hex(const Sha256& digest) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const auto byte : digest) out.append({digits[byte >> 4], digits[byte & 15]});
  return out;
}

}  // namespace outbox
