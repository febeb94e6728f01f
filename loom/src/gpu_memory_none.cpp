// Loom without CUDA's headers: it registers host memory only.
//
// Threads: any.
#include <rdma/fi_errno.h>

#include <cstdio>

#include "loom/src/gpu_memory.hpp"

namespace loom {

int offer_gpu_memory(std::uint64_t /*first*/, std::uint64_t /*bytes*/, GpuOffer& /*offer*/) {
  std::fputs(
      "loom: built without CUDA's headers (cuda.h), so memory of GPUs cannot be registered\n",
      stderr);
  return FI_ENOSYS;
}

void withdraw_gpu_memory(const GpuOffer& /*offer*/) {}

std::optional<GpuPlace> gpu_place(const KeySlot& /*slot*/,
                                  std::uint64_t /*key*/,
                                  std::uint64_t /*address*/) {
  return std::nullopt;
}

GpuPlace gpu_place(std::uint64_t address) {
  return {.address = address};
}

int start_copies(std::int32_t /*gpu*/, std::span<const GpuPart> /*parts*/, GpuTicket& /*ticket*/) {
  return FI_ENOSYS;
}

std::optional<int> result_of(GpuTicket& /*ticket*/) {
  return FI_ENOSYS;
}

int copy_by_cuda(std::uint64_t /*from*/, std::span<std::byte> /*to*/) {
  return FI_ENOSYS;
}

int copy_and_wait(std::int32_t /*gpu*/, const GpuPart& /*part*/) {
  return FI_ENOSYS;
}

}  // namespace loom
