// What put, get, atomic, signal, fence and quiet mean. The one place where a symmetric address
// becomes (region, offset) and where it is decided whether a peer is reached by load and store or
// through a transport.
//
// Threads: any thread may call anything; a Context is used by one thread at a time unless noted.
// Errors: Status only. The caller (the C shim) turns it into words with `describe`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/ids.hpp"
#include "src/base/status.hpp"
#include "src/heap/heap.hpp"
#include "src/rma/waiter.hpp"
#include "src/transport/transport.hpp"

namespace weft::rma {

// An independent stream of operations: one counter per peer. Its counters may be used by several
// threads; quiet then waits for the operations of all of them.
class Context {
 public:
  explicit Context(std::uint32_t pe_count) : counters_(pe_count) {}

  [[nodiscard]] transport::OperationCounter& counter(Pe peer) { return counters_[peer.value]; }

  [[nodiscard]] std::uint32_t pe_count() const {
    return static_cast<std::uint32_t>(counters_.size());
  }

  // Set by the first operation that goes through a transport: until then quiet has nothing to ask.
  bool used_transport = false;

 private:
  std::vector<transport::OperationCounter> counters_;
};

struct Signal {
  std::uint64_t* word = nullptr;  // symmetric
  std::uint64_t value = 0;
  transport::AtomicCode code = transport::AtomicCode::Set;  // Set or Add
};

struct Atomic {
  transport::AtomicCode code = transport::AtomicCode::Set;
  std::uint8_t element_bytes = 8;
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;
};

enum class Blocking : bool { No, Yes };

class Rma {
 public:
  // `rails` may be null: then every PE is mapped.
  Rma(heap::Heap& heap, transport::Transport* rails, Waiter& waiter);

  // The peer's copy of `address` as mapped here; null if the peer is on another node or the
  // address is not symmetric. The fast path of everything: two loads and a compare.
  [[nodiscard]] void* mapped(const void* address, Pe peer) const {
    const std::uint64_t offset = heap_.offset_of(address);
    std::byte* base = heap_.mapped_base(peer);
    return offset < heap_.size() && base != nullptr ? base + offset : nullptr;
  }

  // True if [address, address + bytes) lies in symmetric memory and `peer` exists.
  [[nodiscard]] bool is_valid(const void* address, std::size_t bytes, Pe peer) const {
    return heap_.contains(address, bytes) && peer.value < heap_.pe_count();
  }

  Status put(Context& context, void* dest, std::span<const std::byte> source, Pe peer, Blocking blocking);
  Status get(Context& context, std::span<std::byte> dest, const void* source, Pe peer, Blocking blocking);
  Status put_signal(Context& context, void* dest, std::span<const std::byte> source, const Signal& signal,
                    Pe peer, Blocking blocking);
  Status signal(Context& context, const Signal& signal, Pe peer);
  // `result` null: not fetching, complete after quiet. Else waits for the old value.
  Status atomic(Context& context, void* word, const Atomic& atomic, Pe peer, std::uint64_t* result);
  // A fetching atomic that does not wait: `*result` is written before quiet returns.
  Status atomic_fetch_nbi(Context& context, void* word, const Atomic& atomic, Pe peer, std::uint64_t* result);

  Status quiet(Context& context);
  Status fence(Context& context);

  // Waits until `done` holds, making progress. `describe` says for whom, if it takes long.
  Status wait(const std::function<bool()>& done, const std::function<std::string()>& describe,
              std::span<const Pe> awaited = {});

  // Lets the rails move, once.
  void progress();

  [[nodiscard]] heap::Heap& heap() { return heap_; }

  [[nodiscard]] Waiter& waiter() { return waiter_; }

  // Why (address, bytes, peer) is not accepted, in one sentence.
  [[nodiscard]] std::string describe_invalid(const void* address, std::size_t bytes, Pe peer) const;

 private:
  Status post(Context& context, transport::Operation operation, Blocking blocking);
  Status wait_idle(Context& context, Pe peer, const char* what);

  heap::Heap& heap_;
  transport::Transport* rails_;
  Waiter& waiter_;
};

}  // namespace weft::rma
