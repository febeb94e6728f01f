// Applies one atomic to a word in memory of a GPU, as the CPU reaches it. The same arithmetic as on
// words of the host.
//
// Atomic with all other updates that are made here, not with those of the GPU's own threads.
// Threads: any.
#pragma once

#include <cstdint>
#include <mutex>

#include "src/gpu/word_memory.hpp"
#include "src/transport/atomic_update.hpp"

namespace weft::transport {

// Returns the old value, or anything unless `wants_old`. The GPU's threads see the new one, and
// what NICs had reported before.
inline std::uint64_t apply_atomic(gpu::WordMemory& memory,
                                  void* word,
                                  const AtomicUpdate& update,
                                  bool wants_old) noexcept {
  const std::lock_guard lock(memory.updates());
  memory.show_nic_writes();
  const bool needs_old = wants_old || update.code != AtomicCode::Set || memory.needs_old();
  const std::uint64_t old = needs_old ? memory.load(word, update.element_bytes) : 0;
  std::uint64_t copy = old;  // little-endian: the low bytes are the word
  apply_atomic(&copy, update);
  if (!needs_old || copy != old) {
    memory.replace(word, update.element_bytes, old, copy);
  }
  return old;
}

}  // namespace weft::transport
