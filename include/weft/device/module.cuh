// Gives every .cu file that includes <weft/device.cuh> a copy of the DeviceState in constant memory, and
// registers it with the library. The library fills it in weft_device_init, or at once if that has already run.
#ifndef WEFT_DEVICE_MODULE_CUH
#define WEFT_DEVICE_MODULE_CUH

#include <weft/device.h>
#include <weft/device/state.hpp>

#include <cuda_runtime.h>

namespace weft::device::detail {

// One per file, because separately compiled files cannot share a symbol without relocatable device code.
static __constant__ DeviceState state_of_file;

// Uses the file's own CUDA runtime: the library's runtime does not know the symbol.
static int upload_state(const void* state) {
  return static_cast<int>(cudaMemcpyToSymbol(state_of_file, state, sizeof(DeviceState)));
}

struct ModuleEntry {
  ModuleEntry() { weft_device_module_register(&module, kLayout); }

  ~ModuleEntry() { weft_device_module_unregister(&module); }

  weft_device_module module{&upload_state, nullptr};
};

static ModuleEntry module_entry;

}  // namespace weft::device::detail

namespace weft::device {

inline const __device__ DeviceState& state() {
  return detail::state_of_file;
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_MODULE_CUH
