// The doorbells of the node's PEs: who has changed a word wakes the PE that sleeps until it
// changes. A ring costs a few loads if nobody sleeps.
//
// Threads: any; constant after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/ids.hpp"
#include "src/base/word_bell.hpp"
#include "src/heap/heap.hpp"
#include "src/transport/operation.hpp"

namespace weft::rma {

// A put of up to this size may update a word that another thread waits for.
inline constexpr std::size_t kWordBytesMax = 8;

// Where the doorbells know that word of PE `owner`.
[[nodiscard]] WordPlace place_in_heap(const heap::Heap& heap, const heap::Place& word, Pe owner);

class Doorbells {
 public:
  // `heap` outlives it.
  explicit Doorbells(const heap::Heap& heap);

  // The doorbell key of the word at symmetric `address` of PE `owner`.
  [[nodiscard]] WordPlace place_of(const void* address, Pe owner) const {
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - user_);
    return offset < user_bytes_ ? place_of_user_word(offset) : place_elsewhere(address, owner);
  }

  // Wakes a PE of this node that sleeps until the word at `place` changes. Called by the thread
  // that changed it.
  void ring(Pe peer, WordPlace place) const {
    if (WordBell* bell = bells_[peer.value]; bell != nullptr) {
      ring_unfenced(*bell, place);
    }
  }

  // For a signal word of `peer`, and for a word changed by a put or an atomic. Most such words have
  // no waiter. A waiter with more words than it can list sees such a change only when its sleep
  // times out.
  void ring_for_signal(const void* word, Pe peer) const { ring(peer, place_of(word, peer)); }

  void ring_for(const void* word, Pe peer) const {
    if (WordBell* bell = bells_[peer.value]; bell != nullptr) {
      ring_for_word(*bell, place_of(word, peer));
    }
  }

  // For the words that the operation has changed, whichever transport carried it: a PE of this node
  // may sleep until one of them changes.
  void ring_after(const transport::Operation& operation) const;

 private:
  // Weft's own words, and regions besides the heap.
  [[nodiscard]] WordPlace place_elsewhere(const void* address, Pe owner) const;

  const std::byte* user_;
  std::uint64_t user_bytes_;
  std::vector<WordBell*> bells_;  // by PE; null on other nodes
  const heap::Heap& heap_;
};

}  // namespace weft::rma
