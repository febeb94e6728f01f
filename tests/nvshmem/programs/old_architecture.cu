// Kernels for some architectures alone, as torch builds its extension: where one is not supported,
// that pass of the compiler sees the host's functions only, and the program has a function of the
// same name in its namespace.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 800
#define NVSHMEM_HOSTLIB_ONLY
#endif
#include <nvshmem.h>
#include <nvshmemx.h>

namespace extension {

extern "C" void nvshmem_init() __attribute__((weak));

bool is_available() {
  return nvshmem_init != nullptr;
}

int nvshmemx_cumodule_init(uintptr_t module) {
  return ::nvshmemx_cumodule_init(reinterpret_cast<CUmodule>(module));
}

__global__ void exchange(int64_t* words, char* dest, const char* source, size_t bytes) {
#ifndef NVSHMEM_HOSTLIB_ONLY
  nvshmem_int64_p(words, 1, 0);
  nvshmemx_barrier_all_block();
  nvshmemx_getmem_nbi_block(dest, source, bytes, 0);
  nvshmem_quiet();
#endif
}

int run(int64_t* words, char* dest, const char* source, size_t bytes, cudaStream_t stream) {
  void* arguments[] = {&words, &dest, &source, &bytes};
  nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
  nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, 2, nullptr, 0, &team);
  nvshmemx_broadcastmem_on_stream(team, dest, dest, bytes, 0, stream);
  nvshmemx_putmem_on_stream(dest, source, bytes, 0, stream);
  return nvshmemx_collective_launch(reinterpret_cast<const void*>(exchange), dim3(1), dim3(512),
                                    arguments, 0, stream);
}

}  // namespace extension
