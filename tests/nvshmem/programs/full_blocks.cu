// A kernel that says nothing of its threads, so that it starts with 1,024 only if it takes no more
// than 64 registers.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void full_blocks(int* dest, const int* source, uint64_t* signals, int* seen) {
  const int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
  nvshmemx_int_put_signal_block(dest, source, 4096, signals, 1, NVSHMEM_SIGNAL_ADD, next);
  nvshmem_signal_wait_until(signals, NVSHMEM_CMP_GE, 1);
  nvshmemx_int_put_nbi_block(dest + 4096, source, 4096, next);
  nvshmemx_int_put_nbi_warp(dest + 8192, source, 32, next);
  nvshmemx_barrier_all_block();
  nvshmemx_int_get_block(dest + 12288, source, 4096, next);
  nvshmem_int_p(dest, 7, next);
  nvshmem_fence();
  nvshmem_int_put(dest + 1, source, 1, next);
  nvshmem_quiet();
  nvshmemx_sync_all_block();
  nvshmem_int_wait_until(dest, NVSHMEM_CMP_EQ, 7);
  seen[threadIdx.x] = nvshmem_int_g(dest + threadIdx.x, next);
  seen[threadIdx.x] += nvshmem_int_atomic_fetch_add(dest, 1, next);
  nvshmem_barrier_all();
}

int main() {
  return 0;
}
