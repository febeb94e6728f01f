// Signs the messages to a peer, and recognizes those that it signed: WEFT_AUTHENTICATE=frames. A
// signed message ends with a tag of 16 bytes, which its header does not count.
//
// Each direction between two PEs has a key of its own, made from the job's secret and a random
// number of both PEs. So a tag holds for one sender, one receiver and one run. Sequence numbers
// have 32 bits on the wire and come again; the tag covers their upper 32 bits as well. So a message
// that is sent again later is either a duplicate, which the sequence window drops, or has a wrong
// tag.
//
// Called under the transport's lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "src/base/ids.hpp"
#include "src/bootstrap/message_tag.hpp"
#include "src/transport/rails/wire.hpp"

namespace weft::transport::rails {

inline constexpr std::size_t kTagBytes = sizeof(bootstrap::MessageTag);

// What each PE adds to the keys of its messages; random.
using SealNonce = std::array<std::byte, 32>;

// A 32-bit sequence number that wraps, in 64 bits. It must be looked at before it has moved by
// 2^31.
class WideSequence {
 public:
  void follow(std::uint32_t now) { wide_ = near(now); }

  // Of the numbers that end with these 32 bits, the nearest.
  [[nodiscard]] std::uint64_t near(std::uint32_t low) const {
    const auto distance = static_cast<std::int32_t>(low - static_cast<std::uint32_t>(wide_));
    return wide_ + static_cast<std::uint64_t>(std::int64_t{distance});
  }

 private:
  std::uint64_t wide_ = 0;
};

// Of one PE that exchanges signed messages.
struct SealParty {
  Pe pe;
  SealNonce nonce{};
};

// Where both directions of a connection are, as this PE knows it.
struct SealPosition {
  std::uint32_t next_batch = 0;       // ours
  std::uint32_t next_sequence = 0;    // ours
  std::uint32_t batches_floor = 0;    // of the peer's batches
  std::uint32_t operation_floor = 0;  // of the peer's operations
};

class Seal {
 public:
  Seal(std::string_view secret, const SealParty& mine, const SealParty& theirs);

  // Writes the tag behind the `bytes` of a message to the peer; `memory` has room for it. Returns
  // the bytes with it.
  [[nodiscard]] std::size_t sign(std::span<std::byte> memory,
                                 std::size_t bytes,
                                 const SealPosition& now);

  // A message from the peer without its tag. Empty if the tag is wrong. The bytes of the tag are
  // overwritten.
  [[nodiscard]] std::optional<std::span<const std::byte>> open(std::span<std::byte> message,
                                                               const SealPosition& now);

 private:
  void follow(const SealPosition& now);

  bootstrap::MessageKey to_peer_;
  bootstrap::MessageKey from_peer_;
  WideSequence our_batches_;
  WideSequence our_operations_;
  WideSequence their_batches_;
  WideSequence their_operations_;
};

}  // namespace weft::transport::rails
