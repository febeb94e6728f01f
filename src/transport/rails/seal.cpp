#include "src/transport/rails/seal.hpp"

#include <cstring>

#include "src/bootstrap/frame.hpp"
#include "src/bootstrap/sha256.hpp"

namespace weft::transport::rails {
namespace {

bootstrap::MessageKey key_of(std::string_view secret,
                             const SealParty& sender,
                             const SealParty& receiver) {
  bootstrap::FieldWriter purpose;
  purpose.text("weft messages").u32(sender.pe.value).u32(receiver.pe.value);
  purpose.raw(sender.nonce).raw(receiver.nonce);
  return bootstrap::derive_key(secret, purpose.bytes());
}

// What the tag field of the header holds while the tag is computed: the upper halves of the 64-bit
// sequence numbers, of which the header carries the lower halves.
struct UpperHalves {
  std::uint32_t batch_sequence = 0;
  std::uint32_t applied_floor = 0;
  std::uint32_t batch_floor = 0;
  std::uint32_t reserved = 0;
};

static_assert(sizeof(UpperHalves) == kTagBytes);

std::uint32_t upper_half(std::uint64_t wide) {
  return static_cast<std::uint32_t>(wide >> 32U);
}

BatchHeader header_of(std::span<const std::byte> message) {
  BatchHeader header;
  std::memcpy(&header, message.data(), sizeof(header));
  return header;
}

// A batch without frames has no number.
std::uint32_t upper_half_of_batch(const BatchHeader& header, const WideSequence& batches) {
  return header.frame_count == 0 ? 0 : upper_half(batches.near(header.batch_sequence));
}

}  // namespace

Seal::Seal(std::string_view secret, const SealParty& mine, const SealParty& theirs)
    : to_peer_(key_of(secret, mine, theirs)), from_peer_(key_of(secret, theirs, mine)) {}

void Seal::follow(const SealPosition& now) {
  our_batches_.follow(now.next_batch);
  our_operations_.follow(now.next_sequence);
  their_batches_.follow(now.batches_floor);
  their_operations_.follow(now.operation_floor);
}

std::size_t Seal::sign(std::span<std::byte> memory, std::size_t bytes, const SealPosition& now) {
  follow(now);
  const BatchHeader header = header_of(memory);
  const UpperHalves upper{.batch_sequence = upper_half_of_batch(header, our_batches_),
                          .applied_floor = upper_half(their_operations_.near(header.applied_floor)),
                          .batch_floor = upper_half(their_batches_.near(header.batch_floor))};
  const std::span<std::byte> place = memory.subspan(bytes, kTagBytes);
  std::memcpy(place.data(), &upper, sizeof(upper));
  const bootstrap::MessageTag tag =
      bootstrap::message_tag(to_peer_, memory.first(bytes + kTagBytes));
  std::memcpy(place.data(), tag.data(), sizeof(tag));
  return bytes + kTagBytes;
}

std::optional<std::span<const std::byte>> Seal::open(std::span<std::byte> message,
                                                     const SealPosition& now) {
  if (message.size() < sizeof(BatchHeader) + kTagBytes) {
    return std::nullopt;
  }
  follow(now);
  const BatchHeader header = header_of(message);
  const UpperHalves upper{.batch_sequence = upper_half_of_batch(header, their_batches_),
                          .applied_floor = upper_half(our_operations_.near(header.applied_floor)),
                          .batch_floor = upper_half(our_batches_.near(header.batch_floor))};
  const std::span<std::byte> place = message.last(kTagBytes);
  bootstrap::MessageTag tag;
  std::memcpy(tag.data(), place.data(), sizeof(tag));
  std::memcpy(place.data(), &upper, sizeof(upper));
  if (!bootstrap::equal_in_constant_time(tag, bootstrap::message_tag(from_peer_, message))) {
    return std::nullopt;
  }
  return message.first(message.size() - kTagBytes);
}

}  // namespace weft::transport::rails
