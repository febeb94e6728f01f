// Entry points that no program calls by name: static constructors of files with kernels register
// their device state here, and binaries that contain NVIDIA's own device library call nvshmemid_*.
// That device library works only with NVIDIA's host library, so those calls return an error.
//
// Threads: any.
#include <cstdio>

#include <weft_nvshmem/modules.h>
#include <weft_nvshmem/types.h>

#pragma GCC visibility push(default)

void weft_nvshmem_module_register(weft_device_module* module, uint64_t layout) {
  weft_device_module_register(module, layout);
}

void weft_nvshmem_module_unregister(weft_device_module* module) {
  weft_device_module_unregister(module);
}

extern "C" {

// Its arguments are private structures of NVIDIA's library and are not read.
int nvshmemid_hostlib_init_attr() {
  static_cast<void>(std::fprintf(
      stderr,
      "weft: this binary contains NVSHMEM's own device library, which works with NVIDIA's host "
      "library alone; rebuild it against Weft's headers (docs/NVSHMEM.md)\n"));
  return NVSHMEMX_ERROR_NOT_SUPPORTED;
}

void nvshmemid_hostlib_finalize() {}

int nvshmemid_init_status() {
  return NVSHMEM_STATUS_NOT_INITIALIZED;
}
}

#pragma GCC visibility pop
