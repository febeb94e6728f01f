// The values that travel through the `Transport` seam: one `Operation`, and the counter by which its
// owner learns that it is done. Built by rma, read by every transport; no behaviour.
//
// An `Operation` is a plain value: whoever keeps it beyond the call copies it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/atomic.hpp"
#include "src/base/ids.hpp"

namespace weft::transport {

enum class OperationKind : std::uint8_t {
  Put,        // local -> remote
  Get,        // remote -> local
  PutSignal,  // local -> remote, then `atomic` on `signal_word`
  Atomic,     // `atomic` on the remote word; the old value goes to `result` unless null
};

enum class AtomicCode : std::uint8_t {
  Set,
  Add,
  And,
  Or,
  Xor,
  CompareSwap,
  Fetch,
};

// Where something lies on a peer: the same (region, offset) on every PE.
struct RemoteAddress {
  RegionIndex region;
  HeapOffset offset;
};

// An atomic on one word of 4 or 8 bytes. Floating-point words are set, fetched and swapped by bits.
struct AtomicUpdate {
  AtomicCode code = AtomicCode::Set;
  std::uint8_t element_bytes = 8;
  RemoteAddress word;
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;  // CompareSwap only
};

// Counts operations towards one peer on one context. The transport issues when it accepts one and
// completes when it is visible, once each. Equal means: all are visible.
class OperationCounter {
 public:
  void issue() {
    // relaxed: the number is compared only by waiters, which read `completed_` with acquire.
    AtomicRef(issued_).fetch_add(1, std::memory_order_relaxed);
  }

  void complete(bool failed) {
    if (failed) {
      AtomicRef(failed_).store(1, std::memory_order_relaxed);  // ordered by the release below
    }
    // SYNC operation-done: pairs with is_idle; the operation's effects happen before the count.
    AtomicRef(completed_).fetch_add(1, std::memory_order_release);
  }

  [[nodiscard]] bool is_idle() const {
    // Completed comes first: an operation that another thread issues meanwhile can then only make
    // the answer no.
    // SYNC operation-done: pairs with complete.
    const std::uint64_t completed = AtomicRef(completed_).load(std::memory_order_acquire);
    // relaxed: a caller waits for operations that it issued itself, earlier in its own order.
    return completed == AtomicRef(issued_).load(std::memory_order_relaxed);
  }

  // True once an operation of this counter could not be done: its peer is lost, or it was refused.
  [[nodiscard]] bool has_failed() const {
    return AtomicRef(failed_).load(std::memory_order_relaxed) != 0;  // read after is_idle
  }

  // The failure has been told.
  void forget_failure() {
    AtomicRef(failed_).store(0, std::memory_order_relaxed);  // by who reads has_failed
  }

 private:
  mutable std::uint64_t issued_ = 0;
  mutable std::uint64_t completed_ = 0;
  mutable std::uint32_t failed_ = 0;
};

struct Operation {
  OperationKind kind = OperationKind::Put;
  // The source may be reused as soon as post returns Ok: the transport copies what it still needs.
  bool copy_source = false;
  // `local` is memory of a GPU, in a device region: only NICs touch it. Not with copy_source.
  bool on_device = false;
  Pe peer;
  RemoteAddress remote;
  void* local = nullptr;
  std::size_t bytes = 0;
  AtomicUpdate update;              // PutSignal's signal, or the atomic
  std::uint64_t* result = nullptr;  // Atomic: the old value, written before the counter moves
  OperationCounter* counter = nullptr;
};

}  // namespace weft::transport
