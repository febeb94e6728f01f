// The semantics of put, get, atomic, signal, fence and quiet, and where the choice between
// load/store and a transport is made. An operation's address is translated once, before the call:
// by `find`, which checks it, or by `place_of`. All that follows uses the heap::Place.
//
// Threads: any thread may call any function.
// Errors: Status only. The caller (the C shim) formats the message with `describe_invalid`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "src/base/ids.hpp"
#include "src/base/status.hpp"
#include "src/heap/heap.hpp"
#include "src/rma/context.hpp"
#include "src/rma/doorbells.hpp"
#include "src/rma/mapped_memory.hpp"
#include "src/rma/mapped_peers.hpp"
#include "src/rma/remote_operations.hpp"
#include "src/rma/waiter.hpp"
#include "src/transport/mapped/mapped_transport.hpp"
#include "src/transport/routes.hpp"

namespace weft::rma {

using transport::AtomicCode;

struct Signal {
  heap::Place word;  // at the PE that is signalled
  std::uint64_t value = 0;
  AtomicCode code = AtomicCode::Set;  // Set or Add
};

struct Atomic {
  AtomicCode code = AtomicCode::Set;
  std::uint8_t element_bytes = 8;
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;
};

class Rma {
 public:
  // All arguments outlive it. Peers that `routes` does not reach are mapped here.
  Rma(heap::Heap& heap, const transport::Routes& routes, Waiter& waiter);

  // What a call asks first, and what it does last if memory is mapped here.
  [[nodiscard]] MappedPeers& mapped_peers() { return mapped_peers_; }

  [[nodiscard]] const MappedPeers& mapped_peers() const { return mapped_peers_; }

  [[nodiscard]] const Doorbells& doorbells() const { return doorbells_; }

  // Whether there is such a PE, and [address, address + bytes) is memory that programs may use;
  // Weft's own is not. `place` is then where it lies at the peer. No bytes need no memory, and have
  // no place.
  [[nodiscard]] bool find(const void* address,
                          std::size_t bytes,
                          Pe peer,
                          heap::Place& place) const {
    if (peer.value >= pe_count()) [[unlikely]] {
      return false;
    }
    return bytes == 0 || (heap_.find(address, bytes, peer, place) &&
                          (place.region.value != 0 || place.offset.value >= heap_.control_bytes()));
  }

  // Where symmetric memory, including control bytes, lies at a PE that exists; anything else is
  // undefined behavior.
  [[nodiscard]] heap::Place place_of(const void* address, Pe peer) const {
    return heap_.place_of(address, peer);
  }

  // In the functions below a place is what find or place_of returned for the same peer.

  Status put(Context& context,
             const heap::Place& dest,
             std::span<const std::byte> source,
             Pe peer,
             Blocking blocking);
  Status get(Context& context,
             std::span<std::byte> dest,
             const heap::Place& source,
             Pe peer,
             Blocking blocking);
  Status put_signal(Context& context,
                    const heap::Place& dest,
                    std::span<const std::byte> source,
                    const Signal& signal,
                    Pe peer,
                    Blocking blocking);
  // Puts all segments, then updates the signal's word unless `signal` is null. The list may be
  // reused on return, and no longer has the segments that are mapped here.
  Status putv(Context& context,
              std::span<transport::GatherSegment> segments,
              const Signal* signal,
              Pe peer,
              Blocking blocking);
  Status signal(Context& context, const Signal& signal, Pe peer);
  // If `result` is null: not fetching, complete after quiet. Otherwise waits for the old value.
  Status atomic(Context& context,
                const heap::Place& word,
                const Atomic& atomic,
                Pe peer,
                std::uint64_t* result);
  // A non-blocking fetching atomic: the element_bytes at `result` are written before quiet returns.
  // Only 8-byte atomics overlap, because transports write 8 bytes.
  Status atomic_fetch_nbi(
      Context& context, const heap::Place& word, const Atomic& atomic, Pe peer, void* result);

  Status quiet(Context& context);
  // Completes the operations to `peer` only.
  Status quiet(Context& context, Pe peer);
  Status fence(Context& context);

  // Makes progress on the transports, once; hears of lost PEs now and then.
  void progress() {
    static_cast<void>(routes_.progress());
    waiter_.listen();
  }

  [[nodiscard]] heap::Heap& heap() { return heap_; }

  [[nodiscard]] Waiter& waiter() { return waiter_; }

  [[nodiscard]] std::uint32_t pe_count() const { return heap_.pe_count(); }

  // The error message for a rejected (address, bytes, peer).
  [[nodiscard]] std::string describe_invalid(const void* address, std::size_t bytes, Pe peer) const;

 private:
  Status post(Context& context, transport::Operation& operation, Blocking blocking);
  Status post_one_by_one(Context& context,
                         std::span<const transport::GatherSegment> segments,
                         const Signal* signal,
                         Pe peer,
                         Blocking blocking);

  MappedPeers mapped_peers_;
  Doorbells doorbells_;
  heap::Heap& heap_;
  transport::MappedTransport mapped_;
  const transport::Routes& routes_;  // to PEs and regions that are not mapped here
  RemoteOperations remote_;
  Waiter& waiter_;
};

}  // namespace weft::rma
