#include "src/bootstrap/sha256.hpp"

#include <cerrno>
#include <cstdint>

#include <fmt/format.h>
#include <sodium.h>
#include <sys/random.h>

#include "src/base/error.hpp"

namespace weft::bootstrap {
namespace {

const unsigned char* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

unsigned char* raw(Digest& digest) {
  return reinterpret_cast<unsigned char*>(digest.data());
}

}  // namespace

Digest sha256(std::span<const std::byte> message) {
  static_assert(sizeof(Digest) == crypto_hash_sha256_BYTES);
  Digest digest{};
  crypto_hash_sha256(raw(digest), raw(message), message.size());
  return digest;
}

Digest hmac_sha256(std::string_view key, std::span<const std::byte> message) {
  static_assert(sizeof(Digest) == crypto_auth_hmacsha256_BYTES);
  crypto_auth_hmacsha256_state state;
  Digest digest{};
  crypto_auth_hmacsha256_init(&state, raw(std::as_bytes(std::span(key))), key.size());
  crypto_auth_hmacsha256_update(&state, raw(message), message.size());
  crypto_auth_hmacsha256_final(&state, raw(digest));
  return digest;
}

bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) {
  // Lengths are public: they are fixed by the protocol.
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string to_hex(std::span<const std::byte> bytes) {
  std::string text(2 * bytes.size() + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), raw(bytes), bytes.size());
  text.pop_back();
  return text;
}

Digest random_digest() {
  Digest bytes{};
  // The kernel's own: an error is ours to report. Requests of up to 256 bytes are never cut short
  // (getrandom(2)).
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    fail("getrandom of {} bytes failed: {}", bytes.size(), errno_words(errno));
  }
  return bytes;
}

}  // namespace weft::bootstrap
