// Gives every .cu file that includes <weft/device.cuh> a copy of the DeviceState (with -rdc, of its
// hot part) in constant memory, and registers it with the library. The library fills it in
// weft_device_init, or at once if that has already run.
#ifndef WEFT_DEVICE_MODULE_CUH
#define WEFT_DEVICE_MODULE_CUH

#include <weft/device/state.hpp>

// What NVRTC compiles is loaded by the program, and sees no host.
#ifdef __CUDACC_RTC__
#ifndef WEFT_DEVICE_LOADED_MODULE
#define WEFT_DEVICE_LOADED_MODULE 1
#endif
#else
#include <weft/device.h>

#include <cuda_runtime.h>
#endif

// A front door over Weft may have programs link its own library alone, which then passes these
// calls on.
#ifndef WEFT_DEVICE_MODULE_REGISTER
#define WEFT_DEVICE_MODULE_REGISTER weft_device_module_register
#define WEFT_DEVICE_MODULE_UNREGISTER weft_device_module_unregister
#endif

// -DWEFT_DEVICE_LOADED_MODULE: for files whose machine code the program loads itself (cuModuleLoad,
// cuLibraryLoad). They have no runtime that could upload, so what loads them finds the state by
// this name, and writes a HotState to it.
#ifdef WEFT_DEVICE_LOADED_MODULE
extern "C" {
#if defined(__CUDACC_RDC__) && !defined(WEFT_NVSHMEM_DEVICE_LIBRARY)
__attribute__((weak))  // several files make one module
#endif
__constant__ weft::device::HotState weft_device_state_of_module;
}
#endif

namespace weft::device::detail {

#ifndef WEFT_DEVICE_LOADED_MODULE
// One per file, because separately compiled files cannot share a symbol without relocatable device
// code. With it they could, but libraries and archives of one program that are device-linked apart
// would then share the host's name of it.
#ifdef __CUDACC_RDC__
using StateOfFile = HotState;
#else
using StateOfFile = DeviceState;
#endif
static __constant__ StateOfFile state_of_file;

// Uses the file's own CUDA runtime: the library's runtime does not know the symbol.
static int upload_state(const void* state) {
  const StateOfFile* part = static_cast<const DeviceState*>(state);
  return static_cast<int>(cudaMemcpyToSymbol(state_of_file, part, sizeof(StateOfFile)));
}

// `upload` is an argument: named in the constructor, which all files of a program share unless it
// is inlined, it would be one file's for all of them.
struct ModuleEntry {
  explicit ModuleEntry(int (*upload)(const void* state)) : module{upload, nullptr} {
    WEFT_DEVICE_MODULE_REGISTER(&module, kLayout);
  }

  ~ModuleEntry() { WEFT_DEVICE_MODULE_UNREGISTER(&module); }

  weft_device_module module;
};

static ModuleEntry module_entry{&upload_state};
#endif

}  // namespace weft::device::detail

namespace weft::device {

inline const __device__ HotState& state() {
#ifdef WEFT_DEVICE_LOADED_MODULE
  return weft_device_state_of_module;
#else
  return detail::state_of_file;
#endif
}

// All of it; for what is not in HotState.
inline const __device__ DeviceState& whole_state() {
#if defined(__CUDACC_RDC__) || defined(WEFT_DEVICE_LOADED_MODULE)
  return *state().whole;
#else
  return detail::state_of_file;
#endif
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_MODULE_CUH
