// The ring of commands between a GPU and its proxy: many producers, one consumer at a time,
// bounded. The same code runs on the GPU, in the proxy, and host to host in tests; a policy defines
// how memory is accessed. Two uses:
//
//   command ring: GPU threads produce (RingProducer), the proxy's thread consumes (RingConsumer)
//   inbox:        the proxy's thread produces, GPU threads consume under a try-lock (inbox.hpp)
//
// A position only grows, in 64 bits: at 10^9 commands a second for 580 years. Its slot is position
// % capacity. Three numbers describe the progress: `head` (claimed), `consumed` (everything below
// has been taken: its slot and payload may be overwritten) and `completed` (everything below is
// visible at its target).
//
// A Memory policy has these static functions. "Far" words are shared by GPU and CPU, "near" words
// by the producers (or by the consumers) of one side only.
//   load_far(const uint64_t*)        acquire     load_near(const uint64_t*)     acquire [1]
//   store_far(uint64_t*, value)      release     store_near(uint64_t*, value)   release [1]
//   add_near(uint64_t*, n)           old value, no order
//   try_lock(uint64_t*) -> bool      acquire     unlock(uint64_t*)              release
//   load_far_pair(const uint64_t*, first&, second&)    acquire; if the second word's writer
//                                                      wrote the first before it, that is read
//   store_far_after_load(uint64_t*, value)             after a load whose value led to this store
//   store_slot(uint64_t* to, const uint64_t* words)    eight words in any order, each after all
//                                                      earlier accesses of the thread (release)
//   load_slot(const uint64_t* from, uint64_t* words)   eight words in any order, each before
//                                                      all later accesses of the thread
//                                                      (acquire)
//   pause()
// [1] Once its user fences.
#ifndef WEFT_DEVICE_RING_HPP
#define WEFT_DEVICE_RING_HPP

#include <weft/device/command.hpp>
#include <weft/device/host_device.hpp>
#include <weft/device/standard.hpp>

namespace weft {
namespace device {

// The reply to one command, in the slot of its position. The thread that waited writes 0 to
// `position_plus_one` after it has read `value`; the slot's next reply is not written before that.
struct alignas(16) Reply {
  std::uint64_t value;
  std::uint64_t position_plus_one;  // after `value`, for load_far_pair
};

#ifndef __CUDACC_RTC__  // whose offsetof is no constant
static_assert(offsetof(Reply, position_plus_one) == sizeof(std::uint64_t), "see load_far_pair");
#endif

// Where a ring lies: three words, from which everything else is computed, so that a GPU thread
// needs no table of addresses. All of it starts zeroed. `far` is shared by GPU and CPU:
//
//   slots [capacity]  payload [capacity][kPayloadBytes]  replies [capacity]  consumed  completed
//
// and `near` belongs to the side that produces, or for an inbox to the side that consumes. Words
// that different sides write, and those that many threads poll, lie in lines of their own. An inbox
// needs no head, no *_seen and no completed: its single producer keeps its own counts, and a
// consumed command is an applied one.
struct RingView {
  std::byte* far = nullptr;
  std::byte* near = nullptr;
  std::uint64_t capacity = 0;  // a power of two

  static constexpr std::size_t kLineBytes = 128;
  static constexpr std::size_t kNearBytes = 2 * kLineBytes;

  WEFT_HOST_DEVICE static constexpr std::size_t far_bytes(std::uint64_t capacity) {
    return words_at(capacity) + 2 * kLineBytes;
  }

  // Views of the `count` rings that follow each other in two pieces of memory.
  WEFT_HOST_DEVICE RingView after(std::uint64_t count) const {
    return {far + count * far_bytes(capacity), near + count * kNearBytes, capacity};
  }

  WEFT_HOST_DEVICE std::uint64_t slot_of(std::uint64_t position) const {
    return position & (capacity - 1);
  }

  WEFT_HOST_DEVICE std::uint64_t* slot(std::uint64_t position) const {
    return reinterpret_cast<std::uint64_t*>(far + slot_of(position) * sizeof(CommandSlot));
  }

  WEFT_HOST_DEVICE std::byte* payload(std::uint64_t position) const {
    return far + capacity * sizeof(CommandSlot) + slot_of(position) * kPayloadBytes;
  }

  WEFT_HOST_DEVICE Reply* reply(std::uint64_t position) const {
    return reinterpret_cast<Reply*>(far + capacity * (sizeof(CommandSlot) + kPayloadBytes)) +
           slot_of(position);
  }

  // Far, written by the consumer.
  WEFT_HOST_DEVICE std::uint64_t* consumed() const { return word(far + words_at(capacity)); }

  WEFT_HOST_DEVICE std::uint64_t* completed() const {
    return word(far + words_at(capacity) + kLineBytes);
  }

  // Near. The head and the last known `completed` are read with one load.
  WEFT_HOST_DEVICE std::uint64_t* head() const { return word(near); }

  WEFT_HOST_DEVICE std::uint64_t* completed_seen() const { return word(near) + 1; }

  WEFT_HOST_DEVICE std::uint64_t* consumed_seen() const { return word(near + kLineBytes); }

  // The lock for polling `completed`.
  WEFT_HOST_DEVICE std::uint64_t* looking() const { return word(near + kLineBytes) + 1; }

  // Near, of an inbox: its consumers' lock, and the next position to apply.
  WEFT_HOST_DEVICE std::uint64_t* lock() const { return word(near) + 2; }

  WEFT_HOST_DEVICE std::uint64_t* next() const { return word(near + kLineBytes) + 2; }

 private:
  // Where the words follow the replies, in a line of their own.
  WEFT_HOST_DEVICE static constexpr std::size_t words_at(std::uint64_t capacity) {
    return (capacity * (sizeof(CommandSlot) + kPayloadBytes + sizeof(Reply)) + kLineBytes - 1) /
           kLineBytes * kLineBytes;
  }

  WEFT_HOST_DEVICE static std::uint64_t* word(std::byte* address) {
    return reinterpret_cast<std::uint64_t*>(address);
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
    return Memory::add_near(ring_.head(), count);
  }

  // True if the slot of `position` may be written.
  WEFT_HOST_DEVICE bool has_room(std::uint64_t position) {
    // SYNC ring-seen: pairs with the store below, by a thread that saw ring-progress for us. The
    // load comes first, so that it and the claim may be in flight together.
    const std::uint64_t seen = Memory::load_near(ring_.consumed_seen());
    if (position - seen < ring_.capacity) {
      return true;
    }
    // Each thread polls for itself, unlike in look_at_completed: with a lock only a fifth of the
    // commands get through.
    // SYNC ring-progress: pairs with RingConsumer::release_below: the slot has been read.
    const std::uint64_t consumed = Memory::load_far(ring_.consumed());
    // SYNC ring-seen: what this thread saw. A stale value from another thread may replace it: that
    // costs one more poll.
    Memory::store_near(ring_.consumed_seen(), consumed);
    return position - consumed < ring_.capacity;
  }

  // `idle` is called in the wait loop. A GPU drains its inbox there to avoid deadlock: the peer
  // that has to take our commands may be waiting for this GPU to take its own.
  template <typename Idle>
  WEFT_HOST_DEVICE void wait_for_room(std::uint64_t position, Idle&& idle) {
    while (!has_room(position)) {
      idle();
      Memory::pause();
    }
  }

  WEFT_HOST_DEVICE std::byte* payload(std::uint64_t position) const {
    return ring_.payload(position);
  }

  // The calling thread's earlier stores, including those to the payload, are visible to the
  // consumer.
  WEFT_HOST_DEVICE void publish(std::uint64_t position, const Command& command) {
    std::uint64_t words[kSlotWords];  // NOLINT(modernize-avoid-c-arrays)
    encode(command, parity_of(position, ring_.capacity), words);
    // SYNC ring-slot: pairs with RingConsumer::peek.
    Memory::store_slot(ring_.slot(position), words);
  }

  WEFT_HOST_DEVICE bool is_complete(std::uint64_t position) const {
    // SYNC ring-seen: pairs with look_at_completed, by a thread that saw ring-progress for us.
    const std::uint64_t seen = Memory::load_near(ring_.completed_seen());
    return seen > position || look_at_completed(seen) > position;
  }

  // The position after the last claimed command, if commands before it may be incomplete; 0 if all
  // are known to be complete. Does not access far memory.
  WEFT_HOST_DEVICE std::uint64_t incomplete_below() const {
    const std::uint64_t head = Memory::load_near(ring_.head());
    return Memory::load_near(ring_.completed_seen()) < head ? head : 0;
  }

  // Waits for the reply to a command that was published with kReplyWanted. Call it once, from one
  // thread.
  template <typename Idle>
  WEFT_HOST_DEVICE std::uint64_t wait_reply(std::uint64_t position, Idle&& idle) {
    Reply& reply = *ring_.reply(position);
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
  // Reads `completed` and updates `completed_seen`; returns `seen` if another thread is already
  // polling. Only one thread polls at a time, because loads of one word of host memory are
  // serialized, and all other traffic between GPU and host queues behind them: with 32 blocks
  // polling, a copy takes 150 us instead of 4 (docs/decisions/0012).
  WEFT_HOST_DEVICE std::uint64_t look_at_completed(std::uint64_t seen) const {
    // SYNC ring-looking: pairs with unlock below, so that completed_seen only grows.
    if (!Memory::try_lock(ring_.looking())) {
      return seen;
    }
    // SYNC ring-progress: pairs with RingConsumer::complete_below: commands below it are visible.
    const std::uint64_t completed = Memory::load_far(ring_.completed());
    // SYNC ring-seen: what this thread saw, for threads that read the number.
    Memory::store_near(ring_.completed_seen(), completed);
    // SYNC ring-looking: pairs with try_lock above.
    Memory::unlock(ring_.looking());
    return completed;
  }

  RingView ring_;
};

// Threads: one at a time; positions in order.
template <typename Memory>
class RingConsumer {
 public:
  WEFT_HOST_DEVICE explicit RingConsumer(const RingView& ring) : ring_(ring) {}

  // True if the command of `position` has been published. Its payload may be read until release.
  WEFT_HOST_DEVICE bool peek(std::uint64_t position, Command& command) const {
    SlotWords slot;
    const bool is_there = peek(position, slot);
    if (is_there) {
      command = decode(slot);
    }
    return is_there;
  }

  // As above, for those who decode later.
  WEFT_HOST_DEVICE bool peek(std::uint64_t position, SlotWords& slot) const {
    // SYNC ring-slot: pairs with RingProducer::publish.
    Memory::load_slot(ring_.slot(position), slot.words);
    return is_whole(slot, parity_of(position, ring_.capacity));
  }

  WEFT_HOST_DEVICE const std::byte* payload(std::uint64_t position) const {
    return ring_.payload(position);
  }

  // Everything below `position` has been taken.
  WEFT_HOST_DEVICE void release_below(std::uint64_t position) {
    // SYNC ring-progress: pairs with RingProducer::has_room.
    Memory::store_far(ring_.consumed(), position);
  }

  WEFT_HOST_DEVICE void complete_below(std::uint64_t position) {
    // SYNC ring-progress: pairs with RingProducer::look_at_completed.
    Memory::store_far(ring_.completed(), position);
  }

  // False until the thread that waited for the slot's last reply has read it.
  WEFT_HOST_DEVICE bool can_reply(std::uint64_t position) const {
    // SYNC ring-reply-taken: pairs with RingProducer::wait_reply.
    return Memory::load_far(&ring_.reply(position)->position_plus_one) == 0;
  }

  WEFT_HOST_DEVICE void reply(std::uint64_t position, std::uint64_t value) {
    Reply& reply = *ring_.reply(position);
    Memory::store_far(&reply.value, value);
    // SYNC ring-reply: pairs with RingProducer::wait_reply.
    Memory::store_far(&reply.position_plus_one, position + 1);
  }

 private:
  RingView ring_;
};

}  // namespace device
}  // namespace weft

#endif  // WEFT_DEVICE_RING_HPP
