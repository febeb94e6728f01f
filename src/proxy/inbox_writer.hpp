// The proxy's side of the inbox: passes small puts, signals and atomics of other nodes to the GPU's
// own threads, which apply them in order. So all updates of a word in the GPU's heap are atomic
// with respect to the GPU's own atomics.
//
// Threads: only the proxy's. poll passes the old values of fetching atomics to `on_fetched`, in the
// order of the pushes; their slots are not reused before that.
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

// The peer and the request that an old value belongs to.
struct FetchRoute {
  Pe peer;
  std::uint32_t request = 0;
};

class InboxWriter {
 public:
  // `wake_us`: how long records wait there for a thread that serves the inbox before the applier is
  // woken; less where it was the applier that had to come last time.
  InboxWriter(const device::RingView& view, Applier& applier, std::uint32_t wake_us);

  [[nodiscard]] bool has_room() const { return head_ - applied_ < view_.capacity; }

  // `command` has local addresses; with kReplyWanted its old value is sent to `route`. Requires
  // has_room.
  void push(const device::Command& command,
            std::span<const std::byte> payload,
            const FetchRoute& route);

  // Everything below this position is visible at this PE's GPU.
  [[nodiscard]] std::uint64_t applied() const { return applied_; }

  // The position of the next push.
  [[nodiscard]] std::uint64_t head() const { return head_; }

  // Checks what has been applied, and wakes the applier if no thread seems to be applying, or one
  // that is slow and has many commands before it. True if something was applied.
  bool poll(std::uint64_t now_ns,
            FunctionRef<void(const FetchRoute&, std::uint64_t value)> on_fetched);

 private:
  struct Entry {
    FetchRoute route;
    bool fetches = false;
  };

  void help_a_slow_thread(std::uint64_t now_ns);

  device::RingView view_;
  device::RingProducer<HostMemory> producer_;
  Applier& applier_;
  std::uint64_t wake_ns_;
  std::vector<Entry> entries_;  // by slot
  std::uint64_t head_ = 0;
  std::uint64_t applied_ = 0;
  bool has_woken_ = false;      // the applier, for what waits now
  bool is_unserved_ = false;    // the applier applied what came last
  std::uint64_t moved_ns_ = 0;  // when something was last applied, or the inbox was last empty
  // Since when the pace of those who apply is measured, and what was applied by then.
  std::uint64_t paced_ns_ = 0;
  std::uint64_t paced_from_ = 0;
};

}  // namespace weft::proxy
