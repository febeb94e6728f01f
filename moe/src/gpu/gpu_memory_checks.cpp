#include "moe/src/gpu/gpu_memory_checks.hpp"

#include <weft/weft.h>

#include "src/base/error.hpp"
#include "src/gpu/device.hpp"

namespace weft::moe::engine {

void GpuMemoryChecks::require(const char* name,
                              const void* address,
                              std::uintptr_t alignment) const {
  if (address == nullptr) {
    fail(Status::InvalidArgument, "{} is missing; give memory of this PE's GPU", name);
  }
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  if (number % alignment != 0) {
    fail(Status::InvalidArgument,
         "{}, {}, is not at a multiple of {} bytes; copy it to one that is", name, address,
         alignment);
  }
  constexpr std::uintptr_t kMix = 0x9E3779B97F4A7C15;
  const void*& known = known_[number * kMix >> 58U];  // the upper 6 bits
  if (known == address) {
    return;
  }
  if (!weft::gpu::is_reached_by_kernels(address)) {
    fail(Status::InvalidArgument,
         "{}, {}, is memory of the CPU, and the exchange works on the GPU; copy it there", name,
         address);
  }
  known = address;
}

}  // namespace weft::moe::engine
