#include "src/bootstrap/sha256.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <vector>

#include <sys/random.h>

#include "src/base/error.hpp"

namespace weft::bootstrap {
namespace {

constexpr std::size_t kBlockBytes = 64;

// FIPS 180-4, 4.2.2: the first 32 bits of the fractional parts of the first 64 primes' cube roots.
constexpr std::array<std::uint32_t, 64> kRound{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<std::uint32_t, 8>;

std::uint32_t load_big_endian(const std::byte* at) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    word = (word << 8U) | std::to_integer<std::uint32_t>(at[i]);
  }
  return word;
}

std::array<std::uint32_t, 64> schedule(const std::byte* block) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i) {
    w[i] = load_big_endian(block + 4 * i);
  }
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3U);
    const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10U);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  return w;
}

// FIPS 180-4, 6.2.2; s[0..7] are its a..h.
void compress(State& state, const std::byte* block) {
  const auto w = schedule(block);
  State s = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t e = std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25);
    const std::uint32_t choose = (s[4] & s[5]) ^ (~s[4] & s[6]);
    const std::uint32_t t1 = s[7] + e + choose + kRound[i] + w[i];
    const std::uint32_t a = std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22);
    const std::uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
    s = {t1 + a + majority, s[0], s[1], s[2], s[3] + t1, s[4], s[5], s[6]};
  }
  for (std::size_t i = 0; i < state.size(); ++i) {
    state[i] += s[i];
  }
}

// The message's tail, the bit 1, zeros, and the length in bits: one block or two.
std::vector<std::byte> padded_tail(std::span<const std::byte> message) {
  const std::span tail = message.last(message.size() % kBlockBytes);
  std::vector<std::byte> padded(tail.begin(), tail.end());
  padded.push_back(std::byte{0x80});
  padded.resize(tail.size() + 9 <= kBlockBytes ? kBlockBytes : 2 * kBlockBytes);
  const std::uint64_t bits = std::uint64_t{message.size()} * 8;
  for (std::size_t i = 0; i < 8; ++i) {
    padded[padded.size() - 1 - i] = static_cast<std::byte>(bits >> (8 * i));
  }
  return padded;
}

}  // namespace

Digest sha256(std::span<const std::byte> message) {
  State state{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
              0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const std::size_t whole = message.size() / kBlockBytes * kBlockBytes;
  for (std::size_t at = 0; at < whole; at += kBlockBytes) {
    compress(state, message.data() + at);
  }
  const auto tail = padded_tail(message);
  for (std::size_t at = 0; at < tail.size(); at += kBlockBytes) {
    compress(state, tail.data() + at);
  }
  Digest digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::byte>(state[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}

Digest hmac_sha256(std::string_view key, std::span<const std::byte> message) {
  std::array<std::byte, kBlockBytes> block{};
  const std::span key_bytes = std::as_bytes(std::span(key));
  if (key.size() > kBlockBytes) {
    std::ranges::copy(sha256(key_bytes), block.begin());
  } else {
    std::ranges::copy(key_bytes, block.begin());
  }
  std::vector<std::byte> inner;
  std::vector<std::byte> outer;
  for (const std::byte b : block) {
    inner.push_back(b ^ std::byte{0x36});
    outer.push_back(b ^ std::byte{0x5c});
  }
  inner.insert(inner.end(), message.begin(), message.end());
  const Digest first = sha256(inner);
  outer.insert(outer.end(), first.begin(), first.end());
  return sha256(outer);
}

bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) {
  if (a.size() != b.size()) {
    return false;  // lengths are public: they are fixed by the protocol
  }
  std::byte difference{};
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= a[i] ^ b[i];
  }
  return difference == std::byte{};
}

std::string to_hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) {
    text += fmt::format("{:02x}", std::to_integer<unsigned>(b));
  }
  return text;
}

Digest random_digest() {
  Digest bytes{};
  // Requests of up to 256 bytes are never cut short (getrandom(2)).
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    fail("getrandom of {} bytes failed: {}", bytes.size(), errno_words(errno));
  }
  return bytes;
}

}  // namespace weft::bootstrap
