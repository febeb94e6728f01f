// A ring of fixed-size commands in shared memory: many producers in many processes, one consumer.
// Zeroed memory is an empty ring. A slot's commit word holds lap, owner and state. A producer
// claims the slot itself and only then advances the tail, which any producer may do for it. So no
// producer waits for another. The consumer sees the owner of a slot that never becomes ready, and
// can skip a dead owner's slot.
//
// Threads: push from any thread of any process; MpscConsumer by one thread at a time. A template
// over the payload, so that the same ring runs between host threads under ThreadSanitizer.
//
// Rejected design: claim by the tail (fetch_add, then commit). If a producer dies in between, its
// slot has no known owner, and the ring blocks forever.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "src/base/atomic.hpp"
#include "src/base/ids.hpp"

namespace weft::transport::cma {

enum class SlotUse : std::uint8_t { Free, Claimed, Ready };

// lap | owner (30 bits) | use (2 bits). The lap is that of the position, and wraps around.
struct CommitWord {
  std::uint32_t lap = 0;
  std::uint32_t owner = 0;
  SlotUse use = SlotUse::Free;

  [[nodiscard]] constexpr std::uint64_t encode() const {
    return std::uint64_t{lap} << 32U | std::uint64_t{owner} << 2U | static_cast<std::uint64_t>(use);
  }

  [[nodiscard]] static constexpr CommitWord decode(std::uint64_t word) {
    return {.lap = static_cast<std::uint32_t>(word >> 32U),
            .owner = static_cast<std::uint32_t>(word) >> 2U,
            .use = static_cast<SlotUse>(word & 3U)};
  }
};

template <typename Payload, std::uint32_t kSlots>
struct MpscRing {
  static_assert(std::has_single_bit(kSlots));

  struct alignas(kCacheLineBytes) Slot {
    std::uint64_t commit;
    Payload payload;
  };

  [[nodiscard]] static constexpr std::uint32_t lap_of(std::uint64_t position) {
    return static_cast<std::uint32_t>(position / kSlots);
  }

  [[nodiscard]] Slot& slot_at(std::uint64_t position) { return slots[position % kSlots]; }

  alignas(kCacheLineBytes) std::uint64_t tail;  // position of the next claim, or slightly behind it
  std::array<Slot, kSlots> slots;
};

// False if the ring is full. `owner` is the pushing PE.
template <typename Payload, std::uint32_t kSlots>
[[nodiscard]] bool push(MpscRing<Payload, kSlots>& ring,
                        std::uint32_t owner,
                        const Payload& payload) {
  using Memory = MpscRing<Payload, kSlots>;
  const AtomicRef tail(ring.tail);
  while (true) {
    // relaxed: a hint; the slot's own word decides.
    std::uint64_t position = tail.load(std::memory_order_relaxed);
    auto& slot = ring.slot_at(position);
    const AtomicRef commit(slot.commit);
    const std::uint32_t lap = Memory::lap_of(position);
    // SYNC ring-free: pairs with pop; its reads of the slot happen before this use of it.
    std::uint64_t word = commit.load(std::memory_order_acquire);
    const CommitWord now = CommitWord::decode(word);
    const CommitWord claim{.lap = lap, .owner = owner, .use = SlotUse::Claimed};
    if (now.lap == lap && now.use == SlotUse::Free) {
      // SYNC ring-free: as for the load above, which it confirms.
      if (!commit.compare_exchange_strong(word, claim.encode(), std::memory_order_acquire)) {
        continue;
      }
      // relaxed: the tail publishes nothing; the first thread to get here advances it.
      tail.compare_exchange_strong(position, position + 1, std::memory_order_relaxed);
      slot.payload = payload;
      // SYNC ring-ready: pairs with pop.
      commit.store(CommitWord{.lap = lap, .owner = owner, .use = SlotUse::Ready}.encode(),
                   std::memory_order_release);
      return true;
    }
    if (now.lap == lap) {  // claimed, and its owner has not advanced the tail yet
      // relaxed: as above.
      tail.compare_exchange_strong(position, position + 1, std::memory_order_relaxed);
      continue;
    }
    // relaxed: only checks whether the tail is still the value that was read.
    if (now.lap == lap - 1 && tail.load(std::memory_order_relaxed) == position) {
      return false;
    }
  }
}

template <typename Payload, std::uint32_t kSlots>
class MpscConsumer {
 public:
  using Memory = MpscRing<Payload, kSlots>;

  explicit MpscConsumer(Memory& ring) : ring_(&ring) {}

  [[nodiscard]] bool has_ready() const { return is(head_word(), SlotUse::Ready); }

  // Removes the oldest command if it is ready.
  [[nodiscard]] bool pop(Payload& payload) {
    if (!has_ready()) {
      return false;
    }
    payload = ring_->slot_at(head_).payload;
    free_head();
    return true;
  }

  // The owner of the oldest slot if it is claimed and not ready.
  [[nodiscard]] std::optional<std::uint32_t> blocked_by() const {
    const CommitWord word = head_word();
    return is(word, SlotUse::Claimed) ? std::optional(word.owner) : std::nullopt;
  }

  // Skips a slot whose owner is dead.
  void skip() { free_head(); }

 private:
  [[nodiscard]] CommitWord head_word() const {
    // SYNC ring-ready: pairs with push.
    return CommitWord::decode(
        AtomicRef(ring_->slot_at(head_).commit).load(std::memory_order_acquire));
  }

  [[nodiscard]] bool is(const CommitWord& word, SlotUse use) const {
    return word.lap == Memory::lap_of(head_) && word.use == use;
  }

  void free_head() {
    const CommitWord free{.lap = Memory::lap_of(head_) + 1, .use = SlotUse::Free};
    // SYNC ring-free: pairs with push; the payload has been read.
    AtomicRef(ring_->slot_at(head_).commit).store(free.encode(), std::memory_order_release);
    ++head_;
  }

  Memory* ring_;
  std::uint64_t head_ = 0;
};

}  // namespace weft::transport::cma
