// The values that pass through the `Transport` interface: one `Operation`, and the counter that
// tells its owner when it is complete. Built by rma, read by every transport; no behavior.
//
// An `Operation` is a plain value: code that keeps it beyond the call must copy it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "src/base/atomic.hpp"
#include "src/base/ids.hpp"
#include "src/heap/place.hpp"

namespace weft::transport {

enum class OperationKind : std::uint8_t {
  Put,        // local -> remote
  Get,        // remote -> local
  PutSignal,  // local -> remote, then `update` on its word
  Atomic,     // `update` on the remote word; the old value goes to `result` unless null
};

// The values are part of the wire format: new codes come last.
enum class AtomicCode : std::uint8_t {
  Set,
  Add,
  And,
  Or,
  Xor,
  CompareSwap,
  Fetch,
  FloatAdd,  // the word and the operand are the bits of a double, a float or an IEEE half
};

inline constexpr std::uint8_t kAtomicCodeCount = 8;

// An atomic on one word of 2, 4 or 8 bytes. Operand and compare are in the low bytes, and so is the
// old value. Except by FloatAdd, words are taken as integers or raw bits.
struct AtomicUpdate {
  AtomicCode code = AtomicCode::Set;
  std::uint8_t element_bytes = 8;
  heap::Place word;
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;  // CompareSwap only
};

// Counts operations to one peer on one context. The transport calls issue when it accepts an
// operation, and complete when the operation is visible, once for each. If both counts are equal,
// all operations are visible.
class OperationCounter {
 public:
  void issue() {
    // relaxed: the number is compared only by waiters, which read `completed_` with acquire.
    AtomicRef(issued_).fetch_add(1, std::memory_order_relaxed);
  }

  // As issue(), for transports that issue to one peer under one lock: without an atomic addition.
  void issue_locked() {
    // relaxed: as issue(); no other thread writes it meanwhile.
    AtomicRef(issued_).store(issued_ + 1, std::memory_order_relaxed);
  }

  void complete(bool failed, std::uint64_t count = 1) {
    if (failed) {
      AtomicRef(failed_).store(1, std::memory_order_relaxed);  // ordered by the release below
    }
    // SYNC operation-done: pairs with is_idle; the operation's effects happen before the count.
    AtomicRef(completed_).fetch_add(count, std::memory_order_release);
  }

  [[nodiscard]] bool is_idle() const {
    // Reads `completed_` first: an operation that another thread issues in between can then only
    // make the answer false.
    // SYNC operation-done: pairs with complete.
    const std::uint64_t completed = AtomicRef(completed_).load(std::memory_order_acquire);
    // relaxed: a caller waits only for operations that it issued itself, earlier in program order.
    return completed == AtomicRef(issued_).load(std::memory_order_relaxed);
  }

  // True once an operation of this counter has failed: its peer is lost, or it was rejected.
  [[nodiscard]] bool has_failed() const {
    return AtomicRef(failed_).load(std::memory_order_relaxed) != 0;  // read after is_idle
  }

  // The failure has been reported.
  void forget_failure() {
    AtomicRef(failed_).store(0, std::memory_order_relaxed);  // by the thread that reads has_failed
  }

 private:
  mutable std::uint64_t issued_ = 0;
  mutable std::uint64_t completed_ = 0;
  mutable std::uint32_t failed_ = 0;
};

// One range of an operation that gathers.
struct GatherSegment {
  heap::Place remote;
  void* local = nullptr;
  std::size_t bytes = 0;  // not 0
};

struct Operation {
  OperationKind kind = OperationKind::Put;
  // The source may be reused as soon as post returns Ok: the transport copies the data that it
  // still needs.
  bool copy_source = false;
  // `local` is GPU memory in a device region, which only NICs access. Not with copy_source.
  bool on_device = false;
  Pe peer;
  heap::Place remote;
  void* local = nullptr;
  std::size_t bytes = 0;
  AtomicUpdate update;  // PutSignal's signal: 8 bytes, Set or Add; or the atomic
  // Atomic: the old value, written before the counter completes: always 8 bytes.
  std::uint64_t* result = nullptr;
  OperationCounter* counter = nullptr;
  // Put and PutSignal, for a transport that gathers(): the ranges, `bytes` in all, instead of
  // `remote` and `local`. Read during post only.
  std::span<const GatherSegment> segments;
};

}  // namespace weft::transport
