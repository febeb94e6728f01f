// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), for the rendezvous' challenge and response:
// libsodium's.
//
// Threads: any.
// Errors: random_digest throws Error; the others have none.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace weft::bootstrap {

using Digest = std::array<std::byte, 32>;

[[nodiscard]] Digest sha256(std::span<const std::byte> message);
[[nodiscard]] Digest hmac_sha256(std::string_view key, std::span<const std::byte> message);

// Takes the same time wherever the two differ, so that a guesser learns nothing from it.
[[nodiscard]] bool equal_in_constant_time(std::span<const std::byte> a,
                                          std::span<const std::byte> b);

// "00ff...", lower case.
[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);

// 32 bytes of the kernel's randomness. Throws Error.
[[nodiscard]] Digest random_digest();

}  // namespace weft::bootstrap
