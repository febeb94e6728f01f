// How a ring's words are accessed in model tests: as the proxy does (HostMemory), and as the GPU
// does.
#pragma once

#include <weft/device/ring.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "src/proxy/ring_memory.hpp"
#include "tests/model/explorer.hpp"

namespace weft::test {

using proxy::HostMemory;

// weft/device/ring_memory.cuh `GpuMemory`, function by function, in C++'s orders.
struct GpuOrders : HostMemory {
  static Word load_relaxed(const Word* word) {
    return AtomicRef(*const_cast<Word*>(word)).load(std::memory_order_relaxed);
  }

  static Word load_near(const Word* word) { return load_relaxed(word); }

  // One load of 16 bytes: both words are from the same moment, which a second load after the first
  // one includes.
  static void load_far_pair(const Word* pair, Word& first, Word& second) {
    second = load_relaxed(pair + 1);
    model::fence(std::memory_order_acquire, model::Site::current());
    first = load_relaxed(pair);
  }

  static void store_far_after_load(Word* word, Word value) {
    AtomicRef(*word).store(value, std::memory_order_relaxed);
  }

  static void store_slot(Word* to, const Word* words) {
    for (std::size_t i = 0; i < device::kSlotWords; ++i) {
      AtomicRef(to[i]).store(words[i], std::memory_order_relaxed);
    }
  }

  static void load_slot(const Word* from, Word* words) {
    for (std::size_t i = 0; i < device::kSlotWords; ++i) {
      words[i] = load_relaxed(from + i);
    }
    model::fence(std::memory_order_acquire, model::Site::current());
  }
};

// Two of a slot's eight words: all are stored and loaded alike, and each more word doubles what is
// explored. The test AGpusRelaxedSlotIsWholeForTheProxy (command_ring_test.cpp) has all eight.
template <typename Memory>
struct TwoWords : Memory {
  using Word = std::uint64_t;
  static constexpr std::size_t kFirst = 0;
  static constexpr std::size_t kOperand = 4;

  static void store_slot(Word* to, const Word* words) {
    constexpr auto kOrder =
        std::is_same_v<Memory, HostMemory> ? std::memory_order_release : std::memory_order_relaxed;
    AtomicRef(to[kFirst]).store(words[kFirst], kOrder);
    AtomicRef(to[kOperand]).store(words[kOperand], kOrder);
  }

  static void load_slot(const Word* from, Word* words) {
    const Word first = Memory::load_far(from + kFirst);
    for (std::size_t i = 0; i < device::kSlotWords; ++i) {
      words[i] = first & device::kParityBit;
    }
    words[kOperand] = Memory::load_far(from + kOperand);
  }
};

using TwoHostWords = TwoWords<HostMemory>;
using TwoGpuWords = TwoWords<GpuOrders>;

}  // namespace weft::test
