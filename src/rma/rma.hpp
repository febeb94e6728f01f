// The semantics of put, get, atomic, signal, fence and quiet. The only place where a symmetric
// address is translated to (region, offset), and where the choice between load/store and a
// transport is made.
//
// Threads: any thread may call any function.
// Errors: Status only. The caller (the C shim) formats the message with `describe_invalid`.
#pragma once

#include <weft/weft.h>

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
  std::uint64_t* word = nullptr;  // symmetric
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

  // True if [address, address + bytes) is memory that programs may use; Weft's own is not.
  [[nodiscard]] bool is_symmetric(const void* address, std::size_t bytes) const {
    const auto place = heap_.place_of(address);
    return place && bytes <= place->bytes_left &&
           (place->region.value != 0 || place->offset.value >= heap_.control_bytes());
  }

  // The local mapping of `address` at the peer; null if it is not mapped here. `address` is in
  // symmetric memory, including control bytes.
  [[nodiscard]] void* view(const void* address, Pe peer) const { return heap_.view(address, peer); }

  // The functions below accept symmetric memory, including control bytes, of PEs that exist;
  // anything else is undefined behavior.

  Status put(
      Context& context, void* dest, std::span<const std::byte> source, Pe peer, Blocking blocking);
  Status get(
      Context& context, std::span<std::byte> dest, const void* source, Pe peer, Blocking blocking);
  Status put_signal(Context& context,
                    void* dest,
                    std::span<const std::byte> source,
                    const Signal& signal,
                    Pe peer,
                    Blocking blocking);
  // Puts all segments, then updates the signal's word unless `signal` is null. The list may be
  // reused on return.
  Status putv(Context& context,
              std::span<const weft_segment> segments,
              const Signal* signal,
              Pe peer,
              Blocking blocking);
  Status signal(Context& context, const Signal& signal, Pe peer);
  // If `result` is null: not fetching, complete after quiet. Otherwise waits for the old value.
  Status atomic(Context& context, void* word, const Atomic& atomic, Pe peer, std::uint64_t* result);
  // A non-blocking fetching atomic: the element_bytes at `result` are written before quiet returns.
  // Only 8-byte atomics overlap, because transports write 8 bytes.
  Status atomic_fetch_nbi(
      Context& context, void* word, const Atomic& atomic, Pe peer, void* result);

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
  [[nodiscard]] transport::RemoteAddress remote_address(const void* address) const {
    if (const std::uint64_t offset = heap_.offset_of(address); offset < heap_.size()) [[likely]] {
      return {.region = RegionIndex(0), .offset = HeapOffset(offset)};
    }
    const auto place = heap_.place_of(address).value_or(heap::Place{});
    return {.region = place.region, .offset = place.offset};
  }

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
