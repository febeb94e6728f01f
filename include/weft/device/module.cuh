// Gives every .cu file that includes <weft/device.cuh> its copy of the DeviceState in constant memory, and
// enters it with the library, which fills it at weft_device_init, or at once if that has been.
#ifndef WEFT_DEVICE_MODULE_CUH
#define WEFT_DEVICE_MODULE_CUH

#include <weft/device.h>
#include <weft/device/state.hpp>

#include <cuda_runtime.h>

namespace weft::device::detail {

// One for each file, as a file compiled alone cannot share it with another.
static __constant__ DeviceState state_of_file;

// By the file's own CUDA runtime: that of the library does not know the symbol.
static int upload_state(const void* state) {
  return static_cast<int>(cudaMemcpyToSymbol(state_of_file, state, sizeof(DeviceState)));
}

struct ModuleEntry {
  ModuleEntry() { weft_device_module_register(&module, sizeof(DeviceState)); }

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
