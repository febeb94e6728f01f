// Kernels with one fault each, which a GPU may forgive: emulated_bad_kernels CASE.
// test_emulated_gpu.py knows what is said of them.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

// Half of the block comes to one barrier, half to another.
__global__ void two_barriers() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncwarp();
    asm volatile("bar.sync %0, %1;" ::"r"(1), "r"(64) : "memory");
  }
}

// Lane 5 has gone when the others vote with it.
__global__ void lane_gone(unsigned* votes) {
  if (threadIdx.x % 32 != 5) {
    votes[threadIdx.x] = __ballot_sync(~0U, 1);
  }
}

__global__ void not_in_mask(unsigned* votes) {
  votes[threadIdx.x] = __ballot_sync(0xFFFFU, 1);
}

// The block ends while the copy engine still reads its memory.
__global__ void not_awaited(std::byte* to) {
  extern __shared__ std::byte memory[];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 64; ++i) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to + 16 * i),
                   "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(memory))), "r"(16)
                   : "memory");
    }
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  }
}

// Nothing wrong: a block of two warps, whose sum is that of its threads.
__global__ void sum(unsigned* out) {
  unsigned mine = threadIdx.x;
  for (int by = 16; by > 0; by /= 2) {
    mine += __shfl_xor_sync(~0U, mine, by);
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(out, mine);
  }
  __syncthreads();
  if (threadIdx.x == 63) {
    out[1] = out[0];
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* which = argc > 1 ? argv[1] : "";
  unsigned* memory = nullptr;
  if (cudaMalloc(&memory, 4096) != cudaSuccess || cudaMemset(memory, 0, 4096) != cudaSuccess) {
    return 2;
  }
  if (std::strcmp(which, "two-barriers") == 0) {
    two_barriers<<<1, 64>>>();
  } else if (std::strcmp(which, "lane-gone") == 0) {
    lane_gone<<<1, 64>>>(memory);
  } else if (std::strcmp(which, "not-in-mask") == 0) {
    not_in_mask<<<1, 32>>>(memory);
  } else if (std::strcmp(which, "not-awaited") == 0) {
    not_awaited<<<1, 32, 1024>>>(reinterpret_cast<std::byte*>(memory));
  } else {
    sum<<<1, 64>>>(memory);
  }
  const int error = cudaDeviceSynchronize();
  unsigned found[2] = {};
  if (error == cudaSuccess) {
    cudaMemcpy(found, memory, sizeof found, cudaMemcpyDeviceToHost);
  }
  std::printf("error %d, sums %u %u\n", error, found[0], found[1]);
  return error == cudaSuccess ? 0 : 1;
}
