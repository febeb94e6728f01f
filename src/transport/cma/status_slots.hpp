// How a target notifies a sender that a command is complete: it writes the sender's slot and
// increments the sender's single counter. Slots are answered in any order, targets write different
// cache lines, and the sender polls only one word until it changes. Zeroed memory is a board
// without answers.
//
// Threads: answer from any thread of any process, once per reserved slot; the sender's lock guards
// StatusBoard.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "src/base/atomic.hpp"
#include "src/base/ids.hpp"

namespace weft::transport::cma {

enum class SlotState : std::uint32_t {
  Open,  // not answered
  Done,
  Failed,     // the target could not execute it
  Forbidden,  // the kernel forbids the target to copy; nothing was done
};

struct alignas(kCacheLineBytes) StatusSlot {
  SlotState state;
  std::uint32_t unused;
  std::uint64_t result;  // an atomic's old value
};

template <std::uint32_t kSlots>
struct StatusMemory {
  static_assert(kSlots % 64 == 0);
  alignas(kCacheLineBytes) std::uint64_t answers;
  std::array<StatusSlot, kSlots> slots;
};

struct Answer {
  SlotState state = SlotState::Done;
  std::uint64_t result = 0;
};

template <std::uint32_t kSlots>
void answer(StatusMemory<kSlots>& memory, std::uint32_t slot_index, const Answer& given) {
  StatusSlot& slot = memory.slots[slot_index];
  slot.result = given.result;
  // SYNC slot-answered: pairs with collect; result, copies and atomics happen before.
  AtomicRef(slot.state).store(given.state, std::memory_order_release);
  // SYNC answers-moved: pairs with has_news, so that a thread that sees the count sees the slot.
  AtomicRef(memory.answers).fetch_add(1, std::memory_order_release);
}

template <std::uint32_t kSlots>
class StatusBoard {
 public:
  explicit StatusBoard(StatusMemory<kSlots>& memory) : memory_(&memory) {}

  // A slot that no target writes until its command is posted; empty if all are in use.
  [[nodiscard]] std::optional<std::uint32_t> reserve() {
    for (std::uint32_t i = 0; i < busy_.size(); ++i) {
      if (busy_[i] != ~std::uint64_t{0}) {
        const auto bit = static_cast<std::uint32_t>(std::countr_one(busy_[i]));
        busy_[i] |= std::uint64_t{1} << bit;
        const std::uint32_t slot_index = i * 64 + bit;
        // relaxed: the command that names the slot publishes it.
        AtomicRef(memory_->slots[slot_index].state)
            .store(SlotState::Open, std::memory_order_relaxed);
        return slot_index;
      }
    }
    return std::nullopt;
  }

  void release(std::uint32_t slot_index) {
    busy_[slot_index / 64] &= ~(std::uint64_t{1} << slot_index % 64);
  }

  [[nodiscard]] bool has_news() const {
    // SYNC answers-moved: pairs with answer.
    return AtomicRef(memory_->answers).load(std::memory_order_acquire) != seen_;
  }

  // Calls on_answer(slot index, Answer) for each answered slot and releases the slot. True if there
  // was one.
  template <typename OnAnswer>
  bool collect(OnAnswer&& on_answer) {
    // SYNC answers-moved: pairs with answer.
    const std::uint64_t now = AtomicRef(memory_->answers).load(std::memory_order_acquire);
    if (now == seen_) {
      return false;
    }
    seen_ = now;  // before the scan: a later answer changes the count again
    for (std::uint32_t i = 0; i < busy_.size(); ++i) {
      for (std::uint64_t rest = busy_[i]; rest != 0; rest &= rest - 1) {
        look_at(i * 64 + static_cast<std::uint32_t>(std::countr_zero(rest)), on_answer);
      }
    }
    return true;
  }

 private:
  template <typename OnAnswer>
  void look_at(std::uint32_t slot_index, OnAnswer& on_answer) {
    StatusSlot& slot = memory_->slots[slot_index];
    // SYNC slot-answered: pairs with answer.
    const SlotState state = AtomicRef(slot.state).load(std::memory_order_acquire);
    if (state != SlotState::Open) {
      release(slot_index);
      on_answer(slot_index, Answer{.state = state, .result = slot.result});
    }
  }

  StatusMemory<kSlots>* memory_;
  std::array<std::uint64_t, kSlots / 64> busy_{};
  std::uint64_t seen_ = 0;
};

}  // namespace weft::transport::cma
