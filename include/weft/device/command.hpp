// A request of a GPU to its proxy, or of a proxy to its GPU: one Command in a slot of 64 bytes.
// This file is the only definition of the slot; both sides include it.
//
// The highest bit of every word of a slot carries the parity of the ring's lap. A slot is valid
// when all eight words have the parity of the expected lap. So the stores of a slot need no order
// among themselves, and no flag follows them. A ring starts zeroed; the first lap has parity 1.
//
// What a command's words mean depends on its kind, and on the direction: command_views.hpp names
// them, and nothing else knows their places.
#ifndef WEFT_DEVICE_COMMAND_HPP
#define WEFT_DEVICE_COMMAND_HPP

#include <weft/device/host_device.hpp>
#include <weft/device/standard.hpp>

namespace weft {
namespace device {

enum class CommandKind : std::uint8_t {
  Nop,  // complete as soon as it is taken: measures the ring itself
  Put,
  Get,
  PutSignal,  // a PE that observes the signal observes the data
  Signal,
  Atomic,  // with kReplyWanted it fetches: the reply's value is the old value
  // Later commands of this ring become visible, at each peer, after all that were taken before.
  Fence,
  Await,    // the ring's next command is taken after those of other rings that are named here
  PutList,  // puts of many segments, which the slot's payload lists
};

// The values of weft::transport::AtomicCode as far as Fetch, on words of 4 and 8 bytes. A static
// assertion in src/proxy compares them.
enum class AtomicOp : std::uint8_t { Set, Add, And, Or, Xor, CompareSwap, Fetch };

// Command::flags.
enum : std::uint8_t {
  kPayloadInSlot = 1,  // the data is in the slot's payload area
  kReplyWanted = 2,    // the slot's reply is written when the command is complete
  kFenceBefore = 4,    // as if a Fence preceded it, for its own peer
  kSignalAfter = 8,    // PutList: then a word is updated, as by a PutSignal
};

// The largest put whose data is carried inline, in the slot's payload area.
constexpr std::size_t kPayloadBytes = 512;
constexpr std::uint64_t kCommandBytesMax = (std::uint64_t{1} << 48U) - 1;

constexpr std::size_t kCommandWords = 6;

struct Command {
  CommandKind kind = CommandKind::Nop;
  std::uint8_t element_bytes = 8;  // of the word that an update changes: 4 or 8
  AtomicOp op = AtomicOp::Set;     // of that update
  std::uint8_t flags = 0;
  std::uint32_t pe = 0;
  // Word 0 is below 2^48, words 1 to 3 are below 2^63: addresses and offsets are. See the views.
  std::uint64_t words[kCommandWords] = {};  // NOLINT(modernize-avoid-c-arrays): as in SlotWords
};

static_assert(sizeof(Command) == 8 + kCommandWords * sizeof(std::uint64_t) &&
                  std::is_trivially_copyable<Command>::value,
              "kernels pass it by reference, its words one after the other");

// The rings that one Await names.
constexpr std::uint32_t kAwaitedRings = 5;

constexpr std::size_t kSlotWords = 8;

// What is read from a slot.
struct SlotWords {
  std::uint64_t
      words[kSlotWords];  // NOLINT(modernize-avoid-c-arrays): device code has no std::array
};

struct alignas(64) CommandSlot : SlotWords {};

static_assert(sizeof(CommandSlot) == 64, "a slot is one cache line and one PCIe write");

constexpr std::uint64_t kParityBit = std::uint64_t{1} << 63U;

// Where a slot holds what. Bit 63 is the parity in every word.
//   0, 1, 2   words 1, 2 and 3 of the command
//   3         its word 0 in bits 0-47, kind 48-51, op 52-55, flags 56-59, whether 8 bytes wide 60
//   4, 5      bits 0-62 of its words 4 and 5
//   6         pe in bits 0-31, bit 63 of word 4 in 32, of word 5 in 33
//   7         unused
constexpr unsigned kKindShift = 48;
constexpr unsigned kOpShift = 52;
constexpr unsigned kFlagsShift = 56;
constexpr unsigned kWideShift = 60;
constexpr unsigned kWord4TopShift = 32;
constexpr unsigned kWord5TopShift = 33;

// The parity bit of the lap that contains `position`, in a ring of `capacity` slots (a power of
// two).
WEFT_HOST_DEVICE constexpr std::uint64_t parity_of(std::uint64_t position, std::uint64_t capacity) {
  return (position & capacity) == 0 ? kParityBit : 0;
}

WEFT_HOST_DEVICE inline void encode(const Command& command,
                                    std::uint64_t parity,
                                    std::uint64_t* words) {
  const std::uint64_t wide = command.element_bytes == 8 ? 1 : 0;
  words[0] = command.words[1];
  words[1] = command.words[2];
  words[2] = command.words[3];
  words[3] = command.words[0] | static_cast<std::uint64_t>(command.kind) << kKindShift |
             static_cast<std::uint64_t>(command.op) << kOpShift |
             static_cast<std::uint64_t>(command.flags) << kFlagsShift | wide << kWideShift;
  words[4] = command.words[4];
  words[5] = command.words[5];
  words[6] = command.pe | (command.words[4] >> 63U) << kWord4TopShift |
             (command.words[5] >> 63U) << kWord5TopShift;
  words[7] = 0;
  for (std::size_t i = 0; i < kSlotWords; ++i) {
    words[i] = (words[i] & ~kParityBit) | parity;
  }
}

// Whether the slot holds a whole command of the lap. Only then do the following mean something.
WEFT_HOST_DEVICE inline bool is_whole(const SlotWords& slot, std::uint64_t parity) {
  std::uint64_t differs = 0;
  for (const std::uint64_t word : slot.words) {
    differs |= word ^ parity;
  }
  return (differs & kParityBit) == 0;
}

WEFT_HOST_DEVICE inline std::uint8_t flags_in(const SlotWords& slot) {
  return static_cast<std::uint8_t>(slot.words[3] >> kFlagsShift & 15U);
}

WEFT_HOST_DEVICE inline Command decode(const SlotWords& slot) {
  const std::uint64_t packed = slot.words[3];
  const std::uint64_t tops = slot.words[6];
  Command command;
  command.words[1] = slot.words[0] & ~kParityBit;
  command.words[2] = slot.words[1] & ~kParityBit;
  command.words[3] = slot.words[2] & ~kParityBit;
  command.words[0] = packed & kCommandBytesMax;
  command.kind = static_cast<CommandKind>(packed >> kKindShift & 15U);
  command.op = static_cast<AtomicOp>(packed >> kOpShift & 15U);
  command.flags = flags_in(slot);
  command.element_bytes = (packed >> kWideShift & 1U) != 0 ? 8 : 4;
  command.pe = static_cast<std::uint32_t>(tops);
  command.words[4] = (slot.words[4] & ~kParityBit) | (tops >> kWord4TopShift & 1U) << 63U;
  command.words[5] = (slot.words[5] & ~kParityBit) | (tops >> kWord5TopShift & 1U) << 63U;
  return command;
}

}  // namespace device
}  // namespace weft

#endif  // WEFT_DEVICE_COMMAND_HPP
