// The ring of commands between a GPU and its proxy: many producers, one consumer at a time, bounded.
// The same code runs host to host in tests, on the GPU, and in the proxy; how memory is reached is a
// policy. Three uses:
//
//   command ring: GPU threads produce (RingProducer), the proxy's thread consumes (RingConsumer)
//   inbox:        the proxy's thread produces, GPU threads consume under a try-lock (InboxConsumer)
//
// A position only grows; its slot is position % capacity. Three numbers say how far things are:
// `head` (claimed), `consumed` (everything below has been taken: its slot and payload may be written
// again) and `completed` (everything below is visible where it was meant to be).
//
// A Memory policy has these static functions. "Far" words are shared by GPU and CPU, "near" words by the
// producers (or by the consumers) of one side only.
//   load_far(const uint64_t*)           acquire        load_near(const uint64_t*)          acquire, once its
//   store_far(uint64_t*, value)         release        store_near(uint64_t*, value)        release   user fences
//   add_near(uint64_t*, n)              old value, no order
//   try_lock(uint64_t*) -> bool         acquire        unlock(uint64_t*)                   release
//   load_far_pair(const uint64_t*, first&, second&)    acquire; where the second word's writer wrote the first
//                                                      before it, so it is read
//   store_far_after_load(uint64_t*, value)             after a load whose value led to this store
//   store_slot(uint64_t* to, const uint64_t* words)    eight words in any order, each after all that the
//                                                      thread did before (release)
//   load_slot(const uint64_t* from, uint64_t* words)   eight words in any order, each before all that the
//                                                      thread does afterwards (acquire)
//   pause()
#ifndef WEFT_DEVICE_RING_HPP
#define WEFT_DEVICE_RING_HPP

#include <weft/device/command.hpp>
#include <weft/device/host_device.hpp>

#include <cstddef>
#include <cstdint>

namespace weft {
namespace device {

// An answer to one command, in the slot of its position. Whoever waited writes 0 to `position_plus_one`
// when it has read `value`; the slot's next reply is not written before.
struct alignas(16) Reply {
  std::uint64_t value;
  std::uint64_t position_plus_one;  // behind `value`, for load_far_pair
};

static_assert(offsetof(Reply, position_plus_one) == sizeof(std::uint64_t), "see load_far_pair");

// Where a ring lies. All memory starts zeroed. An inbox needs no head, consumed_seen and completed: its one
// producer counts for itself, and taken is applied.
struct RingView {
  CommandSlot* slots = nullptr;   // far: [capacity]
  std::byte* payload = nullptr;   // far: [capacity][kPayloadBytes]
  Reply* replies = nullptr;       // far: [capacity]
  std::uint64_t* head = nullptr;  // near the producers; 16-byte aligned, completed_seen behind it
  std::uint64_t* completed_seen =
      nullptr;                             // near the producers: what they last read of `completed`
  std::uint64_t* consumed_seen = nullptr;  // the same of `consumed`
  std::uint64_t* looking = nullptr;        // near the producers: one of them looks at `completed`
  std::uint64_t* consumed = nullptr;       // far, written by the consumer
  std::uint64_t* completed = nullptr;      // far, written by the consumer
  std::uint64_t* lock = nullptr;           // near the consumers, of an inbox only
  std::uint64_t* next = nullptr;           // the same: the position to be applied next
  std::uint64_t capacity = 0;              // a power of two

  WEFT_HOST_DEVICE std::uint64_t slot_of(std::uint64_t position) const {
    return position & (capacity - 1);
  }

  WEFT_HOST_DEVICE std::byte* payload_of(std::uint64_t position) const {
    return payload + slot_of(position) * kPayloadBytes;
  }
};

// Threads: any number at once, all of one side.
//
//   position = producer.claim(); producer.wait_for_room(position, idle);
//   copy up to kPayloadBytes to producer.payload(position); producer.publish(position, command);
template <typename Memory>
class RingProducer {
 public:
  WEFT_HOST_DEVICE explicit RingProducer(const RingView& ring) : ring_(ring) {}

  // Takes `count` positions in a row and returns the first. All of them must be published.
  WEFT_HOST_DEVICE std::uint64_t claim(std::uint64_t count = 1) {
    return Memory::add_near(ring_.head, count);
  }

  // True if the slot of `position` may be written.
  WEFT_HOST_DEVICE bool has_room(std::uint64_t position) {
    // SYNC ring-seen: pairs with the store below, by a thread that saw ring-progress for us. The load comes first: it and
    // the claim may be on their way together.
    const std::uint64_t seen = Memory::load_near(ring_.consumed_seen);
    if (position - seen < ring_.capacity) {
      return true;
    }
    // Each looks for itself, other than in look_at_completed: with a lock a fifth of the commands comes through.
    // SYNC ring-progress: pairs with RingConsumer::release_below: the slot has been read.
    const std::uint64_t consumed = Memory::load_far(ring_.consumed);
    // SYNC ring-seen: what this thread saw. An older number from another thread may replace it: that costs a look more.
    Memory::store_near(ring_.consumed_seen, consumed);
    return position - consumed < ring_.capacity;
  }

  // `idle` is called while it waits. A GPU drains its inbox there: the peer that has to take our
  // commands may be waiting for this GPU to take its own.
  template <typename Idle>
  WEFT_HOST_DEVICE void wait_for_room(std::uint64_t position, Idle&& idle) {
    while (!has_room(position)) {
      idle();
      Memory::pause();
    }
  }

  WEFT_HOST_DEVICE std::byte* payload(std::uint64_t position) const {
    return ring_.payload_of(position);
  }

  // The calling thread's earlier stores, also those to the payload, are there for whoever takes it.
  WEFT_HOST_DEVICE void publish(std::uint64_t position, const Command& command) {
    std::uint64_t words[kSlotWords];  // NOLINT(modernize-avoid-c-arrays)
    encode(command, parity_of(position, ring_.capacity), words);
    // SYNC ring-slot: pairs with RingConsumer::peek.
    Memory::store_slot(ring_.slots[ring_.slot_of(position)].words, words);
  }

  WEFT_HOST_DEVICE bool is_complete(std::uint64_t position) const {
    // SYNC ring-seen: pairs with look_at_completed, by a thread that saw ring-progress for us.
    const std::uint64_t seen = Memory::load_near(ring_.completed_seen);
    return seen > position || look_at_completed(seen) > position;
  }

  // The number of the command behind the last that was claimed, if what lies before it may be incomplete; 0 if
  // all is known to be complete, without a look at far memory.
  WEFT_HOST_DEVICE std::uint64_t incomplete_below() const {
    const std::uint64_t head = Memory::load_near(ring_.head);
    return Memory::load_near(ring_.completed_seen) < head ? head : 0;
  }

  // Waits for the reply to a command that was published with kReplyWanted; once, by one thread.
  template <typename Idle>
  WEFT_HOST_DEVICE std::uint64_t wait_reply(std::uint64_t position, Idle&& idle) {
    Reply& reply = ring_.replies[ring_.slot_of(position)];
    std::uint64_t value = 0;
    for (;;) {
      std::uint64_t position_plus_one = 0;
      // SYNC ring-reply: pairs with RingConsumer::reply.
      Memory::load_far_pair(&reply.value, value, position_plus_one);
      if (position_plus_one == position + 1) {
        break;
      }
      idle();
      Memory::pause();
    }
    // SYNC ring-reply-taken: pairs with RingConsumer::can_reply: the value has been read.
    Memory::store_far_after_load(&reply.position_plus_one, 0);
    return value;
  }

 private:
  // What `completed` is now, and `completed_seen` from now on; `seen` if another thread is just looking. One at a time,
  // because looks of many at one word of host memory are served one by one, and all else between GPU and host waits
  // behind them: with 32 blocks at it a copy takes 150 us instead of 4 (docs/decisions/0012).
  WEFT_HOST_DEVICE std::uint64_t look_at_completed(std::uint64_t seen) const {
    // SYNC ring-looking: pairs with unlock below, so that the number seen only grows.
    if (!Memory::try_lock(ring_.looking)) {
      return seen;
    }
    // SYNC ring-progress: pairs with RingConsumer::complete_below: commands below it are visible.
    const std::uint64_t completed = Memory::load_far(ring_.completed);
    // SYNC ring-seen: what this thread saw, for those who see the number.
    Memory::store_near(ring_.completed_seen, completed);
    // SYNC ring-looking: pairs with try_lock above.
    Memory::unlock(ring_.looking);
    return completed;
  }

  RingView ring_;
};

// Threads: one at a time; positions in order.
template <typename Memory>
class RingConsumer {
 public:
  WEFT_HOST_DEVICE explicit RingConsumer(const RingView& ring) : ring_(ring) {}

  // True if the command of `position` is there. Its payload may be read until release.
  WEFT_HOST_DEVICE bool peek(std::uint64_t position, Command& command) const {
    std::uint64_t words[kSlotWords];  // NOLINT(modernize-avoid-c-arrays)
    // SYNC ring-slot: pairs with RingProducer::publish.
    Memory::load_slot(ring_.slots[ring_.slot_of(position)].words, words);
    return decode(words, parity_of(position, ring_.capacity), command);
  }

  WEFT_HOST_DEVICE const std::byte* payload(std::uint64_t position) const {
    return ring_.payload_of(position);
  }

  // Everything below `position` has been taken.
  WEFT_HOST_DEVICE void release_below(std::uint64_t position) {
    // SYNC ring-progress: pairs with RingProducer::has_room.
    Memory::store_far(ring_.consumed, position);
  }

  WEFT_HOST_DEVICE void complete_below(std::uint64_t position) {
    // SYNC ring-progress: pairs with RingProducer::look_at_completed.
    Memory::store_far(ring_.completed, position);
  }

  // False while whoever waited for the slot's last reply has not read it.
  WEFT_HOST_DEVICE bool can_reply(std::uint64_t position) const {
    // SYNC ring-reply-taken: pairs with RingProducer::wait_reply.
    return Memory::load_far(&ring_.replies[ring_.slot_of(position)].position_plus_one) == 0;
  }

  WEFT_HOST_DEVICE void reply(std::uint64_t position, std::uint64_t value) {
    Reply& reply = ring_.replies[ring_.slot_of(position)];
    Memory::store_far(&reply.value, value);
    // SYNC ring-reply: pairs with RingProducer::wait_reply.
    Memory::store_far(&reply.position_plus_one, position + 1);
  }

 private:
  RingView ring_;
};

// The GPU's side of its inbox. Commands are applied one after the other, in order, by whoever holds
// the lock. There taken is applied: the proxy counts them as visible once they are released.
//
// Threads: any number at once; nobody ever waits for the lock.
template <typename Memory>
class InboxConsumer {
 public:
  WEFT_HOST_DEVICE explicit InboxConsumer(const RingView& ring) : ring_(ring) {}

  // Applies at most `count_max` commands; returns how many. `apply(command, payload)` makes the effects
  // visible to the whole system in the order in which it is called, and returns the word's old value.
  template <typename Apply>
  WEFT_HOST_DEVICE std::uint32_t drain(std::uint32_t count_max, Apply&& apply) {
    // SYNC inbox-lock: pairs with unlock below, of the thread that applied before.
    if (!Memory::try_lock(ring_.lock)) {
      return 0;
    }
    RingConsumer<Memory> ring(ring_);
    const std::uint64_t first = Memory::load_near(ring_.next);  // guarded by the lock
    std::uint64_t next = first;
    Command command;
    while (next - first < count_max && ring.peek(next, command)) {
      const std::uint64_t old = apply(command, ring.payload(next));
      if ((command.flags & kReplyWanted) != 0) {
        ring.reply(next, old);  // the proxy reuses no slot whose reply it has not read
      }
      ++next;
    }
    if (next != first) {
      Memory::store_near(ring_.next, next);
      ring.release_below(next);
    }
    // SYNC inbox-lock: pairs with try_lock above.
    Memory::unlock(ring_.lock);
    return static_cast<std::uint32_t>(next - first);
  }

 private:
  RingView ring_;
};

}  // namespace device
}  // namespace weft

#endif  // WEFT_DEVICE_RING_HPP
