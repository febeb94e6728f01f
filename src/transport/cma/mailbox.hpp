// The memory that a PE shares with the peers of its node so that they can ask it to copy: a command
// ring that all peers write, status slots that it owns as a sender, chunks (bounce buffers) for
// copies if the kernel forbids cross-memory attach, and a bell. Layout: plain structs, the same in
// all processes.
//
// A mailbox belongs to one PE and is mapped by the node's peers; it lives as long as its transport.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/base/bell.hpp"
#include "src/heap/segment.hpp"
#include "src/transport/cma/mpsc_ring.hpp"
#include "src/transport/cma/status_slots.hpp"
#include "src/transport/operation.hpp"

namespace weft::transport::cma {

inline constexpr std::uint64_t kMailboxMagic = 0x31414d4354464557;  // "WEFTCMA1"
inline constexpr std::uint32_t kRingSlots = 512;
inline constexpr std::uint32_t kStatusSlots = 256;
inline constexpr std::uint32_t kChunkCount = 64;
inline constexpr std::size_t kChunkBytes = 16384;  // a source with copy_source fits in one

enum class NodeCommandKind : std::uint8_t {
  Write,       // the target reads the sender's memory into its region
  Read,        // the target writes its region into the sender's memory
  WriteChunk,  // as above, through the sender's chunk
  ReadChunk,
  Update,  // the atomic alone
};

struct NodeCommand {
  std::uint32_t sender;  // PE
  std::uint16_t status_slot;
  std::uint16_t chunk;
  NodeCommandKind kind;
  std::uint8_t has_update;  // Write, WriteChunk: the signal is applied after the copy
  AtomicCode code;
  std::uint8_t element_bytes;
  std::uint32_t region;
  std::uint32_t word_region;
  std::uint32_t unused;
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint64_t local;  // address in the sender's process
  std::uint64_t word_offset;
  std::uint64_t operand;
  std::uint64_t compare;
};

using CommandRing = MpscRing<NodeCommand, kRingSlots>;
using Statuses = StatusMemory<kStatusSlots>;
using Chunk = std::array<std::byte, kChunkBytes>;

struct MailboxMemory {
  std::uint64_t magic;  // peers also read it to test whether the kernel permits access
  Bell bell;
  CommandRing ring;
  Statuses statuses;
  alignas(kCacheLineBytes) std::array<Chunk, kChunkCount> chunks;
};

static_assert(sizeof(NodeCommand) == 72);
static_assert(sizeof(CommandRing::Slot) == 2 * kCacheLineBytes);
static_assert(sizeof(StatusSlot) == kCacheLineBytes);
static_assert(sizeof(Bell) == kCacheLineBytes);
static_assert(sizeof(MailboxMemory) ==
              kCacheLineBytes * (2 + 1 + 2 * kRingSlots + 1 + kStatusSlots) +
                  kChunkCount * kChunkBytes);

class Mailbox {
 public:
  Mailbox() = default;

  // Throws Error if out of memory.
  [[nodiscard]] static Mailbox create();

  // The mailbox that process `pid` has under `descriptor`. Throws Error.
  [[nodiscard]] static Mailbox open(std::int64_t pid, int descriptor);

  [[nodiscard]] int descriptor() const { return segment_.descriptor(); }

  [[nodiscard]] MailboxMemory& memory() const {
    return *reinterpret_cast<MailboxMemory*>(segment_.data());
  }

 private:
  explicit Mailbox(heap::Segment segment) : segment_(std::move(segment)) {}

  heap::Segment segment_;
};

}  // namespace weft::transport::cma
