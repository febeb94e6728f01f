// A kernel whose machine code a program loads itself: each PE writes its number to the next, and
// all meet. With BY_DECLARATIONS it sees no header, as what a compiler links with the device
// library.
#ifdef BY_DECLARATIONS
extern "C" {
__device__ int nvshmem_my_pe();
__device__ int nvshmem_n_pes();
__device__ void nvshmem_int_p(int* dest, int value, int pe);
__device__ void nvshmemx_barrier_all_block();
}
#else
#include <nvshmem.h>
#include <nvshmemx.h>
#endif

extern "C" __global__ void ring(int* inbox, int base) {
  if (threadIdx.x == 0) {
    nvshmem_int_p(inbox, base + nvshmem_my_pe(), (nvshmem_my_pe() + 1) % nvshmem_n_pes());
  }
  nvshmemx_barrier_all_block();
}
