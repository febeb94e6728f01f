// What the words of a Command are, for each kind: a view names its fields and where they are, reads
// them by `from`, and stores them by `write_to`, which leaves the rest of the command as it is.
// Kernels store single fields, by their places: a whole view would cost them instructions.
//
//   from the GPU to the proxy                        from the proxy to the GPU, in the inbox
//   Put                PutCommand                    Put                 InboxPut
//   PutSignal          PutCommand, WordUpdate        PutSignal           InboxPut, InboxUpdate
//   Signal, Atomic     WordUpdate                    Atomic              InboxUpdate
//   Get                GetCommand
//   PutList            PutListCommand and, with kSignalAfter, WordUpdate
//   Await              AwaitCommand
//
// Nop and Fence have no fields. An offset is in the symmetric device heap of the command's PE, an
// address is one of the PE whose ring it is. In the inbox there is no Get and no Fence, and every
// command with data has it in the slot's payload area.
//
// Threads: any; no state.
#ifndef WEFT_DEVICE_COMMAND_VIEWS_HPP
#define WEFT_DEVICE_COMMAND_VIEWS_HPP

#include <weft/device/command.hpp>
#include <weft/device/host_device.hpp>
#include <weft/device/standard.hpp>

namespace weft {
namespace device {

struct PutCommand {
  static constexpr std::size_t kBytes = 0;
  static constexpr std::size_t kDestOffset = 1;
  static constexpr std::size_t kSourceAddress = 2;

  std::uint64_t dest_offset = 0;
  std::uint64_t source_address = 0;  // unused with kPayloadInSlot
  std::uint64_t bytes = 0;

  WEFT_HOST_DEVICE static constexpr PutCommand from(const Command& command) {
    return {command.words[kDestOffset], command.words[kSourceAddress], command.words[kBytes]};
  }

  WEFT_HOST_DEVICE constexpr void write_to(Command& command) const {
    command.words[kDestOffset] = dest_offset;
    command.words[kSourceAddress] = source_address;
    command.words[kBytes] = bytes;
  }
};

struct GetCommand {
  static constexpr std::size_t kBytes = 0;
  static constexpr std::size_t kDestAddress = 1;
  static constexpr std::size_t kSourceOffset = 2;

  std::uint64_t dest_address = 0;
  std::uint64_t source_offset = 0;
  std::uint64_t bytes = 0;

  WEFT_HOST_DEVICE static constexpr GetCommand from(const Command& command) {
    return {command.words[kDestAddress], command.words[kSourceOffset], command.words[kBytes]};
  }

  WEFT_HOST_DEVICE constexpr void write_to(Command& command) const {
    command.words[kDestAddress] = dest_address;
    command.words[kSourceOffset] = source_offset;
    command.words[kBytes] = bytes;
  }
};

// Of a signal, which sets or adds, of an atomic, or of what follows the data of a put.
struct WordUpdate {
  static constexpr std::size_t kWordOffset = 3;
  static constexpr std::size_t kOperand = 4;
  static constexpr std::size_t kCompare = 5;

  std::uint64_t word_offset = 0;
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;  // CompareSwap only
  AtomicOp op = AtomicOp::Set;
  std::uint8_t element_bytes = 8;  // 4 or 8

  WEFT_HOST_DEVICE static constexpr WordUpdate from(const Command& command) {
    return {command.words[kWordOffset], command.words[kOperand], command.words[kCompare],
            command.op, command.element_bytes};
  }

  WEFT_HOST_DEVICE constexpr void write_to(Command& command) const {
    command.words[kWordOffset] = word_offset;
    command.words[kOperand] = operand;
    command.words[kCompare] = compare;
    command.op = op;
    command.element_bytes = element_bytes;
  }
};

// Puts of the segments that the slot's payload lists (list.hpp).
struct PutListCommand {
  static constexpr std::size_t kListBytes = 0;
  static constexpr std::size_t kEntryCount = 1;

  std::uint64_t entry_count = 0;
  std::uint64_t list_bytes = kPayloadBytes;  // always

  WEFT_HOST_DEVICE static constexpr PutListCommand from(const Command& command) {
    return {command.words[kEntryCount], command.words[kListBytes]};
  }

  WEFT_HOST_DEVICE constexpr void write_to(Command& command) const {
    command.words[kEntryCount] = entry_count;
    command.words[kListBytes] = list_bytes;
  }
};

// The ring's next command is taken after those below these positions: of ring `first_ring` and of
// the rings that follow it. 0: none of that ring.
struct AwaitCommand {
  static constexpr std::size_t kFirstRing = 0;
  static constexpr std::size_t kRingPositions = 1;  // and the following words

  std::uint64_t first_ring = 0;
  std::uint64_t ring_positions[kAwaitedRings] = {};  // NOLINT(modernize-avoid-c-arrays)

  WEFT_HOST_DEVICE static constexpr AwaitCommand from(const Command& command) {
    AwaitCommand await;
    await.first_ring = command.words[kFirstRing];
    for (std::size_t i = 0; i < kAwaitedRings; ++i) {
      await.ring_positions[i] = command.words[kRingPositions + i];
    }
    return await;
  }

  WEFT_HOST_DEVICE constexpr void write_to(Command& command) const {
    command.words[kFirstRing] = first_ring;
    for (std::size_t i = 0; i < kAwaitedRings; ++i) {
      command.words[kRingPositions + i] = ring_positions[i];
    }
  }
};

static_assert(AwaitCommand::kRingPositions + kAwaitedRings == kCommandWords,
              "an Await uses all words");

// How much of the slot's payload area a command of the GPU uses, whatever its kind.
WEFT_HOST_DEVICE constexpr std::uint64_t payload_bytes(const Command& command) {
  static_assert(PutCommand::kBytes == PutListCommand::kListBytes,
                "of each kind that has a payload");
  return (command.flags & kPayloadInSlot) != 0 ? command.words[PutCommand::kBytes] : 0;
}

struct InboxPut {
  static constexpr std::size_t kBytes = 0;
  static constexpr std::size_t kDestAddress = 1;

  std::uint64_t dest_address = 0;
  std::uint64_t bytes = 0;  // 0: the command has no data

  // The rest of the slot need not be decoded for it.
  WEFT_HOST_DEVICE static constexpr InboxPut from(const SlotWords& slot) {
    return {slot.words[0] & ~kParityBit, slot.words[3] & kCommandBytesMax};
  }

  WEFT_HOST_DEVICE constexpr void write_to(Command& command) const {
    command.words[kDestAddress] = dest_address;
    command.words[kBytes] = bytes;
  }
};

struct InboxUpdate {
  static constexpr std::size_t kWordAddress = 3;
  static constexpr std::size_t kOperand = 4;
  static constexpr std::size_t kCompare = 5;

  std::uint64_t word_address = 0;
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;  // CompareSwap only
  AtomicOp op = AtomicOp::Set;
  std::uint8_t element_bytes = 8;  // 4 or 8

  WEFT_HOST_DEVICE static constexpr InboxUpdate from(const Command& command) {
    return {command.words[kWordAddress], command.words[kOperand], command.words[kCompare],
            command.op, command.element_bytes};
  }

  WEFT_HOST_DEVICE constexpr void write_to(Command& command) const {
    command.words[kWordAddress] = word_address;
    command.words[kOperand] = operand;
    command.words[kCompare] = compare;
    command.op = op;
    command.element_bytes = element_bytes;
  }
};

}  // namespace device
}  // namespace weft

#endif  // WEFT_DEVICE_COMMAND_VIEWS_HPP
