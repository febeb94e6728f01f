// Which memory of the other PEs is mapped here: the question that begins every put, get and atomic,
// answered with two compares and two loads for the heap. The answer is the mapping alone: to build
// a heap::Place for those that need one would cost stores in each call that does not.
//
// Threads: any thread may ask; nobody asks while renew or disable runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/ids.hpp"
#include "src/heap/heap.hpp"

namespace weft::rma {

class MappedPeers {
 public:
  // `heap` outlives it.
  explicit MappedPeers(const heap::Heap& heap)
      : user_(heap.user()),
        user_bytes_(heap.user_bytes()),
        pe_count_(heap.pe_count()),
        has_regions_(!heap.regions().all().empty()),
        heap_(heap),
        peers_(heap.pe_count(), nullptr) {
    for (std::uint32_t pe = 0; pe < pe_count_; ++pe) {
      if (std::byte* base = heap.mapped_base(Pe(pe)); base != nullptr) {
        peers_[pe] = base + heap.control_bytes();
      }
    }
  }

  // The local mapping of [address, address + bytes) at the peer. Null if the peer is on another
  // node or does not exist, or if the bytes are not all in user memory.
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
  [[nodiscard]] bool is_enabled() const { return user_bytes_ != 0; }

  // Call after a region was added to the heap's.
  void renew() { has_regions_ = is_enabled(); }

  // Makes mapped() return null, so that each call runs its caller's checks.
  void disable() {
    user_bytes_ = 0;
    has_regions_ = false;
  }

 private:
  [[nodiscard]] void* mapped_elsewhere(const void* address,
                                       std::size_t bytes,
                                       std::uint32_t peer) const {
    return has_regions_ && peer < pe_count_ ? heap_.regions().view(address, Pe(peer), bytes)
                                            : nullptr;
  }

  // The members that mapped() reads, adjacent in memory.
  const std::byte* user_;
  std::uint64_t user_bytes_;
  std::uint32_t pe_count_;
  bool has_regions_;  // besides the heap
  const heap::Heap& heap_;
  std::vector<std::byte*> peers_;  // user memory of each PE as mapped here; null on other nodes
};

}  // namespace weft::rma
