// How other processes of this machine find registered memory of a GPU. Its owner draws it up once;
// the slot of the key, in shared memory, carries it to whoever uses the key.
//
// Threads: a value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace loom {

enum class GpuShare : std::uint32_t {
  None,        // it is host memory
  Descriptor,  // CUDA's virtual memory management: a descriptor of its owner
  Handle,      // cudaMalloc: CUDA's IPC handle
};

struct GpuOffer {
  GpuShare share = GpuShare::None;
  std::int32_t descriptor = -1;
  std::uint64_t id = 0;     // of the allocation; no other has it, in any process
  std::uint64_t first = 0;  // of the whole allocation, in its owner
  std::uint64_t bytes = 0;
  std::array<std::byte, 16> gpu{};  // its UUID
  std::array<std::byte, 64> handle{};
};

}  // namespace loom
