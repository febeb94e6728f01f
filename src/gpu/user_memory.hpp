// What CUDA knows of memory that the program has allocated itself: by cudaMalloc, from a pool, or
// by virtual memory management. Nothing of it is kept: the program may free the memory at any time.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::gpu {

enum class UserMemoryKind : std::uint8_t {
  Host,     // or unknown to CUDA
  Gpu,      // of cudaMalloc, of a pool, or of virtual memory management
  Managed,  // it moves between the GPU and the host
};

struct UserMemoryInfo {
  UserMemoryKind kind = UserMemoryKind::Host;
  std::int32_t gpu = -1;     // CUDA's index; Gpu only
  std::uint64_t bytes = 0;   // from the start on, memory of that GPU, at most what was asked about
  std::uint64_t id = 0;      // of the allocation at the start; never used again in this process
  bool admits_nics = false;  // the GPU lets NICs access it
};

// Where `memory` starts, and how much of it is memory of the same GPU: it may consist of several
// adjacent mappings.
[[nodiscard]] UserMemoryInfo find_user_memory(std::span<const std::byte> memory);

}  // namespace weft::gpu
