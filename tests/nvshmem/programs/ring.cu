// The shift around a ring: each PE's number goes to the next one. Also compiled without its kernel.
#include <cstdio>

#include <nvshmem.h>
#include <nvshmemx.h>

#ifndef NO_KERNEL
__global__ void shift(int* destination) {
  nvshmem_int_p(destination, nvshmem_my_pe(), (nvshmem_my_pe() + 1) % nvshmem_n_pes());
}

// A function's address can be taken.
using Put = void (*)(void*, const void*, size_t, int);

__global__ void by_pointer(int* destination, Put* where) {
  *where = nvshmemx_putmem_block;
  nvshmem_half_sum_reduce(NVSHMEM_TEAM_WORLD, reinterpret_cast<half*>(destination),
                          reinterpret_cast<half*>(destination), 1);
  nvshmemx_bfloat16_max_reduce_block(NVSHMEM_TEAM_WORLD,
                                     reinterpret_cast<__nv_bfloat16*>(destination),
                                     reinterpret_cast<__nv_bfloat16*>(destination), 1);
}
#endif

int main() {
  nvshmem_init();
  cudaSetDevice(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE));
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  int* destination = static_cast<int*>(nvshmem_malloc(sizeof(int)));
#ifndef NO_KERNEL
  shift<<<1, 1, 0, stream>>>(destination);
#endif
  nvshmemx_barrier_all_on_stream(stream);
  int message = -1;
  cudaMemcpyAsync(&message, destination, sizeof message, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  std::printf("%d: received message %d\n", nvshmem_my_pe(), message);
  nvshmem_free(destination);
  nvshmem_finalize();
  return 0;
}
