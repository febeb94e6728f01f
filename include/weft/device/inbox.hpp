// The consumer side of an inbox: a group of threads applies commands, up to one a thread at once.
// The same code runs on the GPU (lanes of a warp, inbox.cuh) and in tests, with one thread and with
// several in step.
//
// The owner of the lock applies commands in batches, in order: the data of a batch, then its words.
// Commands between two fences of their sender may become visible in any order, but none of their
// words before its own data. A consumed command is an applied one: the proxy counts commands as
// visible once they are released.
//
// Memory: as in ring.hpp, and fence_release(), after which a thread's stores are seen with all that
// the thread has done and seen. Apply: copy(lanes, words, payload, bytes) stores the data of a
// batch, called by all threads of the group, each with its own command, and with 0 bytes if that
// has none; update(words) changes a command's word and returns the old value. Lanes, the group,
// whose threads make each call together: number() and count(), is_first(), from_first(value) for
// all, leading(yes): how many threads in a row, from number 0, say yes; sync().
#ifndef WEFT_DEVICE_INBOX_HPP
#define WEFT_DEVICE_INBOX_HPP

#include <weft/device/command_views.hpp>
#include <weft/device/ring.hpp>
#include <weft/device/standard.hpp>

namespace weft {
namespace device {

// A group of one.
struct OneLane {
  WEFT_HOST_DEVICE std::uint32_t number() const { return 0; }

  WEFT_HOST_DEVICE std::uint32_t count() const { return 1; }

  WEFT_HOST_DEVICE bool is_first() const { return true; }

  template <typename Value>
  WEFT_HOST_DEVICE Value from_first(Value value) const {
    return value;
  }

  WEFT_HOST_DEVICE std::uint32_t leading(bool yes) const { return yes ? 1 : 0; }

  WEFT_HOST_DEVICE void sync() const {}
};

// Threads: any number of groups at once; none ever waits for the lock.
template <typename Memory, typename Apply>
class InboxConsumer {
 public:
  WEFT_HOST_DEVICE explicit InboxConsumer(const RingView& ring, Apply apply = Apply())
      : ring_(ring), apply_(apply) {}

  // Applies what is there, unless others already do; ends after the batch that makes it
  // `count_max`. Returns the number of commands that this group has applied. Only the owner of the
  // lock polls the inbox: see RingProducer::look_at_completed.
  template <typename Lanes>
  WEFT_HOST_DEVICE std::uint32_t drain(const Lanes& lanes, std::uint32_t count_max) {
    // SYNC inbox-lock: pairs with unlock below, by the previous owner.
    const bool is_locked = lanes.is_first() && Memory::try_lock(ring_.lock());
    if (lanes.from_first(is_locked ? 1U : 0U) == 0) {
      return 0;
    }
    lanes.sync();  // the first thread's acquire, for all: from_first orders no memory
    std::uint64_t next = Memory::load_near(ring_.next());  // guarded by the lock
    std::uint32_t applied = 0;
    std::uint32_t count = lanes.count();
    while (count == lanes.count() && applied < count_max) {
      count = apply_batch(lanes, next);
      next += count;
      applied += count;
    }
    if (lanes.is_first()) {
      if (applied != 0) {
        Memory::store_near(ring_.next(), next);
        RingConsumer<Memory>(ring_).release_below(next);
      }
      // SYNC inbox-lock: pairs with try_lock above.
      Memory::unlock(ring_.lock());
    }
    lanes.sync();
    return applied;
  }

 private:
  // Returns the number of commands.
  template <typename Lanes>
  WEFT_HOST_DEVICE_APART std::uint32_t apply_batch(const Lanes& lanes, std::uint64_t next) {
    RingConsumer<Memory> inbox(ring_);
    const std::uint64_t position = next + lanes.number();
    SlotWords arrived;
    const bool is_there = inbox.peek(position, arrived);
    const std::uint8_t flags = flags_in(arrived);
    const bool is_fenced = (flags & kFenceBefore) != 0;
    const std::uint32_t count = lanes.leading(is_there && (lanes.is_first() || !is_fenced));
    const bool is_mine = lanes.number() < count;
    if (lanes.is_first() && is_there && is_fenced) {
      // SYNC device-signal (pairs with include/weft/device/wait.cuh): earlier words, before later
      // data.
      Memory::fence_release();
    }
    lanes.sync();
    const std::uint64_t bytes = is_mine ? InboxPut::from(arrived).bytes : 0;
    apply_.copy(lanes, arrived, inbox.payload(position), static_cast<std::uint32_t>(bytes));
    lanes.sync();
    if (count != 0) {
      // SYNC device-signal (pairs with include/weft/device/wait.cuh): the batch's data, and what
      // was applied earlier. By each thread, as any of them may have stored data; a warp issues it
      // once.
      Memory::fence_release();
      lanes.sync();
    }
    if (is_mine) {
      const std::uint64_t old = apply_.update(arrived);
      if ((flags & kReplyWanted) != 0) {
        inbox.reply(position, old);  // the proxy reuses a slot only after it has read the reply
      }
    }
    lanes.sync();
    return count;
  }

  RingView ring_;
  Apply apply_;
};

}  // namespace device
}  // namespace weft

#endif  // WEFT_DEVICE_INBOX_HPP
