// The threads that make a call together: one thread, a warp (all 32 lanes), or a block (all its
// threads). All threads of the scope make the call with the same arguments and share the work.
//
//   weft::device::put<weft::device::Block>(dest, source, count, pe);
#ifndef WEFT_DEVICE_SCOPE_CUH
#define WEFT_DEVICE_SCOPE_CUH

#include <weft/device/standard.hpp>

namespace weft::device {

struct Thread {
  static __device__ std::uint32_t rank() { return 0; }

  static __device__ std::uint32_t size() { return 1; }

  static __device__ void sync() {}

  // Whether it is true for any thread of the scope. A sync, as all threads learn it.
  static __device__ bool any(bool value) { return value; }
};

struct Warp {
  static __device__ std::uint32_t rank() {
    std::uint32_t lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
  }

  static __device__ std::uint32_t size() { return 32; }

  static __device__ void sync() { __syncwarp(); }

  static __device__ bool any(bool value) { return __any_sync(~0U, value ? 1 : 0) != 0; }
};

struct Block {
  static __device__ std::uint32_t rank() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  }

  static __device__ std::uint32_t size() { return blockDim.x * blockDim.y * blockDim.z; }

  static __device__ void sync() { __syncthreads(); }

  static __device__ bool any(bool value) { return __syncthreads_or(value ? 1 : 0) != 0; }
};

// All blocks of a kernel that launch_collective started. For collectives only.
struct Grid {
  static __device__ std::uint32_t block() {
    return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  }

  static __device__ std::uint32_t block_count() { return gridDim.x * gridDim.y * gridDim.z; }

  static __device__ std::uint32_t rank() { return block() * Block::size() + Block::rank(); }

  static __device__ std::uint32_t size() { return block_count() * Block::size(); }
};

namespace detail {

// All blocks of a kernel whose one call this is: what they need of each other before and after it,
// the kernel's begin and end give them. For the library's kernels on streams.
struct WholeKernel : Grid {};

}  // namespace detail

// The first thread of a scope.
template <typename Scope>
__device__ bool is_leader() {
  return Scope::rank() == 0;
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_SCOPE_CUH
