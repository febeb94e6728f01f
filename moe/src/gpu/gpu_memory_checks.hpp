// Whether the caller's memory may be given to kernels: an address that they do not reach would end
// the context.
//
// Threads: one at a time. What kernels reached once is taken as reached later, too: that memory was
// not freed in between is for the caller to know.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::moe::engine {

// Of one exchange, one thread at a time. CUDA takes the CPU about a microsecond for an address, and
// a call has up to ten, mostly those of the calls before, as memory of tensors is used again. So
// addresses that were asked for lately are not asked for again.
class GpuMemoryChecks {
 public:
  // Throws InvalidArgument, with `name`, unless kernels reach `address` and it is at a multiple of
  // `alignment`.
  void require(const char* name, const void* address, std::uintptr_t alignment) const;

 private:
  static constexpr std::size_t kKnown = 64;
  mutable std::array<const void*, kKnown> known_{};  // an address has one place here
};

}  // namespace weft::moe::engine
