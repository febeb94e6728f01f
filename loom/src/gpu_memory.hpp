// Memory of GPUs: offered by the process that registers it, mapped by those that write to it or
// read it, and copied by copy engines, on streams of Loom's own. The client's streams and kernels
// are neither waited for nor ordered. Without CUDA's headers (gpu_memory_none.cpp) nothing can be
// registered.
//
// Threads: any. The driver is opened when memory is first registered.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "loom/src/gpu_offer.hpp"
#include "loom/src/segment.hpp"

namespace loom {

// Describes the allocation that holds these bytes, until withdraw(). 0, or a positive error after
// saying why.
[[nodiscard]] int offer_gpu_memory(std::uint64_t first, std::uint64_t bytes, GpuOffer& offer);
void withdraw_gpu_memory(const GpuOffer& offer);

// Memory as this process sees it, and the GPU here whose engines reach it.
struct GpuPlace {
  std::uint64_t address = 0;
  std::int32_t gpu = -1;
};

// Where this process finds `address` of the memory that `slot` describes under `key`; it is mapped
// at the first use, and unmapped after the key has been closed. Empty if it cannot be mapped, after
// saying why.
[[nodiscard]] std::optional<GpuPlace> gpu_place(const KeySlot& slot,
                                                std::uint64_t key,
                                                std::uint64_t address);

// Memory of this process; the GPU is -1 for host memory.
[[nodiscard]] GpuPlace gpu_place(std::uint64_t address);

struct GpuPart {
  std::uint64_t to = 0;
  std::uint64_t from = 0;
  std::uint64_t bytes = 0;
};

// Copies that a GPU has been told to make.
struct GpuTicket {
  void* event = nullptr;
  std::int32_t gpu = -1;

  [[nodiscard]] bool is_valid() const { return event != nullptr; }
};

// Tells that GPU; either side may be host memory. 0 or a positive error.
[[nodiscard]] int start_copies(std::int32_t gpu, std::span<const GpuPart> parts, GpuTicket& ticket);

// Empty while they are under way; then 0 or a positive error, and the ticket is used up.
[[nodiscard]] std::optional<int> result_of(GpuTicket& ticket);

// Copies from memory of a GPU as a client's call of CUDA does: behind what its default stream waits
// for. 0 or a positive error.
[[nodiscard]] int copy_by_cuda(std::uint64_t from, std::span<std::byte> to);

// Copies, and waits for it.
[[nodiscard]] int copy_and_wait(std::int32_t gpu, const GpuPart& part);

}  // namespace loom
