// The proxy's side of the inbox: hands small puts, signals and atomics of other nodes to the GPU's own
// threads, which apply them in order. So everything on a word of the GPU's heap is atomic with the
// GPU's own atomics.
//
// Threads: the proxy's only. The old values of fetching atomics are given to `on_fetched` in poll, in
// the order of the pushes; a slot is not used again before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/base/function_ref.hpp"
#include "src/base/ids.hpp"
#include "src/proxy/copier.hpp"
#include "src/proxy/ring_memory.hpp"

namespace weft::proxy {

// Who asked for an old value.
struct FetchRoute {
  Pe peer;
  std::uint32_t request = 0;
};

class InboxWriter {
 public:
  // `wake_us`: how long records lie there before the applier is woken.
  InboxWriter(const device::RingView& view, Applier& applier, std::uint32_t wake_us);

  [[nodiscard]] bool has_room() const { return head_ - applied_ < view_.capacity; }

  // `command` has local addresses; with kReplyWanted its old value goes to `route`. Needs has_room.
  void push(const device::Command& command,
            std::span<const std::byte> payload,
            const FetchRoute& route);

  // Everything below is visible at this PE's GPU.
  [[nodiscard]] std::uint64_t applied() const { return applied_; }

  // The position of the next push.
  [[nodiscard]] std::uint64_t head() const { return head_; }

  // Looks what has been applied, and wakes the applier if nobody seems to be at it. True if something
  // was applied.
  bool poll(std::uint64_t now_ns,
            FunctionRef<void(const FetchRoute&, std::uint64_t value)> on_fetched);

 private:
  struct Entry {
    FetchRoute route;
    bool fetches = false;
  };

  device::RingView view_;
  device::RingProducer<HostMemory> producer_;
  Applier& applier_;
  std::uint64_t wake_ns_;
  std::vector<Entry> entries_;  // by slot
  std::uint64_t head_ = 0;
  std::uint64_t applied_ = 0;
  std::uint64_t moved_ns_ = 0;  // when something was last applied, or the inbox last empty
};

}  // namespace weft::proxy
