// A part of a program, as several libraries have it: a kernel that calls NVSHMEM. Compiled once for
// each part, whose function PART returns this PE's number as a kernel sees it, after a put to
// itself; -1 on an error.
#include <nvshmem.h>
#include <nvshmemx.h>

static __global__ void where_am_i(int* word, int* seen) {
  const int me = nvshmem_my_pe();
  nvshmem_int_p(word, me + 1, me);
  nvshmem_quiet();
  nvshmem_int_wait_until(word, NVSHMEM_CMP_EQ, me + 1);
  *seen = nvshmem_int_g(word, me) - 1;
}

extern "C" int PART(int* word) {
  int* seen = nullptr;
  if (cudaMallocManaged(&seen, sizeof(int)) != cudaSuccess) {
    return -1;
  }
  *seen = -1;
  where_am_i<<<1, 1>>>(word, seen);
  const int result = cudaDeviceSynchronize() == cudaSuccess ? *seen : -1;
  cudaFree(seen);
  return result;
}
