// The semantics of put, get, atomic, signal, fence and quiet. The only place where a symmetric address is
// translated to (region, offset), and where the choice between load/store and a transport is made.
//
// Threads: any thread may call any function.
// Errors: Status only. The caller (the C shim) formats the message with `describe_invalid`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/ids.hpp"
#include "src/base/status.hpp"
#include "src/base/word_bell.hpp"
#include "src/heap/heap.hpp"
#include "src/rma/context.hpp"
#include "src/rma/waiter.hpp"
#include "src/transport/mapped/atomics.hpp"
#include "src/transport/mapped/copy.hpp"
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

enum class Blocking : bool { No, Yes };

// Where the doorbells know that word of PE `owner`.
[[nodiscard]] WordPlace place_in_heap(const heap::Heap& heap,
                                      transport::RemoteAddress word,
                                      Pe owner);

class Rma {
 public:
  // The transport copies a blocking put of up to this size, which then does not wait for the network.
  static constexpr std::size_t kCopiedBytesMax = std::size_t{16} * 1024;
  // A put of up to this size may update a word that another thread waits for.
  static constexpr std::size_t kWordBytesMax = 8;

  // All arguments outlive it. Peers that `routes` does not reach are mapped here.
  Rma(heap::Heap& heap, const transport::Routes& routes, Waiter& waiter);

  // The local mapping of [address, address + bytes) at the peer. Null if the peer is on another node or does not
  // exist, or if the bytes are not all in user memory. The fast path of every call: two compares and two loads
  // for the heap.
  [[nodiscard, gnu::always_inline]] void* mapped(const void* address,
                                                 std::size_t bytes,
                                                 std::uint32_t peer) const {
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - user_);
    if (peer >= pe_count_ || bytes > user_bytes_ || offset > user_bytes_ - bytes) [[unlikely]] {
      return mapped_elsewhere(address, bytes, peer);
    }
    std::byte* base = peers_[peer];
    return base == nullptr ? nullptr : base + offset;
  }

  // Whether mapped() can return an address.
  [[nodiscard]] bool has_fast_path() const { return user_bytes_ != 0; }

  // Call after a region was added to the heap's. Not while other threads use this object.
  void renew() { has_regions_ = user_bytes_ != 0; }

  // Makes mapped() return null, so that each call runs its caller's checks.
  void disable_fast_path() {
    user_bytes_ = 0;
    has_regions_ = false;
  }

  // True if [address, address + bytes) is memory that programs may use; Weft's own is not.
  [[nodiscard]] bool is_symmetric(const void* address, std::size_t bytes) const {
    const auto place = heap_.place_of(address);
    return place && bytes <= place->bytes_left &&
           (place->region.value != 0 || place->offset.value >= heap_.control_bytes());
  }

  // True if [address, address + bytes) lies in symmetric memory and `peer` exists.
  [[nodiscard]] bool is_valid(const void* address, std::size_t bytes, Pe peer) const {
    const auto place = heap_.place_of(address);
    return peer.value < pe_count_ && (bytes == 0 || (place && bytes <= place->bytes_left));
  }

  // The local mapping of `address` at the peer; null if it is not mapped here. `address` is in symmetric memory,
  // including control bytes.
  [[nodiscard]] void* view(const void* address, Pe peer) const { return heap_.view(address, peer); }

  // The functions below accept what is_valid accepts; anything else is undefined behavior.

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
  Status signal(Context& context, const Signal& signal, Pe peer);
  // If `result` is null: not fetching, complete after quiet. Otherwise waits for the old value.
  Status atomic(Context& context, void* word, const Atomic& atomic, Pe peer, std::uint64_t* result);
  // A non-blocking fetching atomic: the element_bytes at `result` are written before quiet returns. Only 8-byte
  // atomics overlap, because transports write 8 bytes.
  Status atomic_fetch_nbi(
      Context& context, void* word, const Atomic& atomic, Pe peer, void* result);

  // Reads a word of this PE's heap that peers update; their earlier writes are visible afterwards.
  [[nodiscard]] static std::uint64_t read_word(const std::uint64_t* word) {
    return transport::load_word(word);
  }

  // Stores a word that PEs of this node read; a PE that reads it also sees earlier writes.
  static void store_word(std::uint64_t* word, std::uint64_t value) {
    transport::store_word(word, value);
  }

  // The doorbell key of the word at symmetric `address` of PE `owner`.
  [[nodiscard]] WordPlace place_of_word(const void* address, Pe owner) const {
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - user_);
    // Not a place that mapped() returns: Weft's own words, regions besides the heap, and everything if checks are on.
    return offset < user_bytes_ ? place_of_user_word(offset)
                                : place_in_heap(heap_, remote_address(address), owner);
  }

  // Wakes a PE of this node that sleeps until the word at `place` changes. Called by the thread that changed it.
  void ring(Pe peer, WordPlace place) {
    if (WordBell* bell = doorbells_[peer.value]; bell != nullptr) {
      ring_unfenced(*bell, place);
    }
  }

  // For a signal word of `peer`, and for a word changed by a put or an atomic. Most such words have no waiter. A waiter
  // with more words than it can list sees such a change only when its sleep times out.
  void ring_for_signal(const void* word, Pe peer) { ring(peer, place_of_word(word, peer)); }

  void ring_for(const void* word, Pe peer) {
    if (WordBell* bell = doorbells_[peer.value]; bell != nullptr) {
      ring_for_word(*bell, place_of_word(word, peer));
    }
  }

  // Copies between memories that are mapped here.
  static void copy(void* dest, const void* source, std::size_t bytes) {
    transport::copy_bytes(dest, source, bytes);
  }

  Status quiet(Context& context);
  // Completes the operations to `peer` only.
  Status quiet(Context& context, Pe peer);
  Status fence(Context& context);

  // Waits until `done` returns true, making progress. `describe` names what a long wait is for; `words` lists the
  // words that `done` reads.
  Status wait(FunctionRef<bool()> done,
              FunctionRef<std::string()> describe,
              std::span<const Pe> awaited,
              Waiter::ListWords words) {
    return waiter_.wait(done, describe, awaited, words);
  }

  // For a wait whose event may arrive by any path.
  Status wait(FunctionRef<bool()> done,
              FunctionRef<std::string()> describe,
              std::span<const Pe> awaited = {}) {
    return waiter_.wait(done, describe, awaited);
  }

  // Makes progress on the transports, once.
  void progress() { routes_.progress(); }

  [[nodiscard]] heap::Heap& heap() { return heap_; }

  [[nodiscard]] Waiter& waiter() { return waiter_; }

  [[nodiscard]] std::uint32_t pe_count() const { return pe_count_; }

  // The error message for a rejected (address, bytes, peer).
  [[nodiscard]] std::string describe_invalid(const void* address, std::size_t bytes, Pe peer) const;

 private:
  [[nodiscard]] void* mapped_elsewhere(const void* address,
                                       std::size_t bytes,
                                       std::uint32_t peer) const {
    return has_regions_ && peer < pe_count_ ? heap_.view_elsewhere(address, Pe(peer), bytes)
                                            : nullptr;
  }

  void ring_after(const transport::Operation& operation);

  [[nodiscard]] transport::RemoteAddress remote_address(const void* address) const {
    const auto place = heap_.place_of(address).value_or(heap::Place{});
    return {.region = place.region, .offset = place.offset};
  }

  Status post(Context& context, transport::Operation operation, Blocking blocking);
  Status post_remote(Context& context, transport::Operation operation, Blocking blocking);
  Status post_and_wait(transport::Operation operation);
  [[nodiscard]] Status failure_of(Pe peer) const;
  Status submit(const transport::Operation& operation);
  Status quiet_remote(Context& context);
  Status await_counter(Context& context, Pe peer);
  Status wait_idle(transport::OperationCounter& counter, Pe peer, std::string_view what);

  heap::Heap& heap_;
  transport::MappedTransport mapped_;
  const transport::Routes& routes_;  // to PEs and regions that are not mapped here
  Waiter& waiter_;
  // The members that mapped() reads, adjacent in memory.
  const std::byte* user_;
  std::uint64_t user_bytes_;
  std::uint32_t pe_count_;
  bool has_regions_;                  // besides the heap
  std::vector<WordBell*> doorbells_;  // by PE; null on other nodes
  std::vector<std::byte*> peers_;     // user memory of each PE as mapped here; null on other nodes
};

}  // namespace weft::rma
