#include "src/bootstrap/protocol.hpp"

#include <algorithm>

#include "src/base/error.hpp"
#include "src/bootstrap/frame.hpp"

namespace weft::bootstrap {
namespace {

constexpr std::size_t kNamedMax = 16;

// The role comes first, so that one side's proof is never valid as the other's.
Digest proof(std::string_view secret, std::string_view role, const Handshake& handshake) {
  FieldWriter transcript;
  transcript.text(role).raw(handshake.server_nonce).raw(handshake.client_nonce);
  transcript.u32(handshake.pe.value).u32(handshake.pe_count);
  return hmac_sha256(secret, transcript.bytes());
}

}  // namespace

Digest client_proof(std::string_view secret, const Handshake& handshake) {
  return proof(secret, "weft PE", handshake);
}

Digest server_proof(std::string_view secret, const Handshake& handshake) {
  return proof(secret, "weft rendezvous", handshake);
}

Blob pack_blobs(std::span<const Blob> blobs) {
  FieldWriter packed;
  packed.u32(static_cast<std::uint32_t>(blobs.size()));
  for (const Blob& blob : blobs) {
    packed.blob(blob);
  }
  return packed.bytes();
}

std::vector<Blob> unpack_blobs(std::span<const std::byte> packed) {
  FieldReader fields(packed);
  const std::uint32_t count = fields.u32();
  std::vector<Blob> blobs;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::span bytes = fields.blob();
    blobs.emplace_back(bytes.begin(), bytes.end());
  }
  return blobs;
}

std::string format_pes(std::span<const Pe> pes) {
  std::string text = pes.size() == 1 ? "PE " : "PEs ";
  for (std::size_t i = 0; i < std::min(pes.size(), kNamedMax); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", pes[i].value);
  }
  if (pes.size() > kNamedMax) {
    text += fmt::format(" and {} more", pes.size() - kNamedMax);
  }
  return text;
}

std::string format_seconds(std::int64_t milliseconds) {
  return fmt::format("{} s", static_cast<double>(milliseconds) / 1000.0);
}

}  // namespace weft::bootstrap
