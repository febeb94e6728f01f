// Memory of GPUs among what the host registers: what NICs need to reach it, and how the CPU reaches
// its words. CUDA's answer is made by `make_cuda_memories`; tests give another.
//
// Threads: one at a time, while others use the WordMemory of earlier answers.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "src/fabric/rail.hpp"
#include "src/gpu/nic_access.hpp"
#include "src/gpu/word_memory.hpp"

namespace weft::plugins::nvshmem {

struct GpuMemory {
  fabric::DeviceMemory memory;
  gpu::DmaBuf pages;  // until the memory is registered
  std::shared_ptr<gpu::WordMemory> words;
};

class GpuMemories {
 public:
  GpuMemories() = default;
  GpuMemories(const GpuMemories&) = delete;
  GpuMemories& operator=(const GpuMemories&) = delete;
  virtual ~GpuMemories() = default;

  // Empty for memory of the host. Throws Error if it is of a GPU, and NICs or the CPU cannot reach
  // it.
  [[nodiscard]] virtual std::optional<GpuMemory> find(std::span<std::byte> memory) = 0;
};

struct CudaMemoryOptions {
  bool may_map = true;     // by gdrcopy; else always by copies
  bool is_mapped = false;  // other GPUs of the node may map it
};

[[nodiscard]] std::unique_ptr<GpuMemories> make_cuda_memories(const CudaMemoryOptions& options);

}  // namespace weft::plugins::nvshmem
