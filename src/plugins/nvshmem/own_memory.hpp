// A place in this PE's own memory: of the host, or of its GPU, which the CPU reaches through a
// WordMemory. What operations of a PE with itself do to it, and where their results go.
//
// Any thread. Memory of a GPU is copied through a buffer: correct at any size, and slow.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/gpu/word_memory.hpp"
#include "src/transport/operation.hpp"

namespace weft::plugins::nvshmem {

struct OwnMemory {
  std::byte* address = nullptr;      // that NICs may use, and for memory of the host the CPU
  gpu::WordMemory* words = nullptr;  // null: memory of the host

  [[nodiscard]] bool is_device() const { return words != nullptr; }
};

// Between any two kinds. They do not overlap, unless both are the host's.
void copy(const OwnMemory& to, const OwnMemory& from, std::size_t bytes);

// One value of the caller's; of 2, 4 or 8 bytes it is never seen in parts.
void store_value(const OwnMemory& to, const void* value, std::size_t bytes);

// Returns the old value, or anything unless `wants_old`.
std::uint64_t update(const OwnMemory& word, const transport::AtomicUpdate& update, bool wants_old);

}  // namespace weft::plugins::nvshmem
