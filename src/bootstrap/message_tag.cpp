#include "src/bootstrap/message_tag.hpp"

#include <algorithm>

#include <sodium.h>

#include "src/bootstrap/sha256.hpp"

namespace weft::bootstrap {

MessageKey derive_key(std::string_view secret, std::span<const std::byte> purpose) {
  const Digest digest = hmac_sha256(secret, purpose);
  MessageKey key;
  std::copy_n(digest.begin(), key.size(), key.begin());
  return key;
}

MessageTag message_tag(const MessageKey& key, std::span<const std::byte> message) noexcept {
  static_assert(sizeof(MessageKey) == crypto_shorthash_siphashx24_KEYBYTES);
  static_assert(sizeof(MessageTag) == crypto_shorthash_siphashx24_BYTES);
  MessageTag tag;
  crypto_shorthash_siphashx24(reinterpret_cast<unsigned char*>(tag.data()),
                              reinterpret_cast<const unsigned char*>(message.data()),
                              message.size(), reinterpret_cast<const unsigned char*>(key.data()));
  return tag;
}

}  // namespace weft::bootstrap
