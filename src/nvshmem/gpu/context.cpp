// Contexts, streams, pinned memory and modules by the CUDA runtime and driver. See ../gpu.hpp.
#include <weft/device.h>
#include <weft/device/state.hpp>

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstring>
#include <mutex>

#include "src/nvshmem/gpu.hpp"
#include "src/nvshmem/gpu/kernels.hpp"

namespace weft::nvshmem::gpu {
namespace {

template <typename Function>
Function driver(const char* name) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &entry, 12040, cudaEnableDefault, &found);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(name, &entry, cudaEnableDefault, &found);
#endif
  return error == cudaSuccess && found == cudaDriverEntryPointSuccess
             ? reinterpret_cast<Function>(entry)
             : nullptr;
}

// The device state of this job, as libweft last passed it to keep_state. Modules that are loaded
// later get a copy of it.
struct State {
  std::mutex mutex;
  device::DeviceState last;
  bool is_there = false;
};

State& state() {
  static State& only = *new State;
  return only;
}

int keep_state(const void* given) {
  const std::lock_guard lock(state().mutex);
  std::memcpy(&state().last, given, sizeof state().last);
  state().is_there = true;
  return 0;
}

struct Registration {
  Registration() { weft_device_module_register(&module, device::kLayout); }

  ~Registration() { weft_device_module_unregister(&module); }

  weft_device_module module{&keep_state, nullptr};
};

const Registration kRegistration;

// The variable for the device state in modules that the program loads itself
// (weft/device/module.cuh).
constexpr const char* kVariable = "weft_device_state_of_module";

template <typename Module>
ModuleResult upload(const char* get_global, Module module) {
  using Copy = CUresult (*)(CUdeviceptr, const void*, std::size_t);
  const auto find =
      driver<CUresult (*)(CUdeviceptr*, std::size_t*, Module, const char*)>(get_global);
  const auto copy = driver<Copy>("cuMemcpyHtoD");
  if (find == nullptr || copy == nullptr) {
    return {.error = cudaErrorInsufficientDriver};
  }
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  if (find(&address, &bytes, module, kVariable) != CUDA_SUCCESS) {
    return {};
  }
  const std::lock_guard lock(state().mutex);
  if (!state().is_there || bytes != sizeof(device::HotState)) {
    return {.error = cudaErrorInvalidValue, .is_there = true};
  }
  return {.error = copy(address, static_cast<const device::HotState*>(&state().last), bytes) ==
                           CUDA_SUCCESS
                       ? static_cast<int>(cudaSuccess)
                       : static_cast<int>(cudaErrorInvalidValue),
          .is_there = true};
}

}  // namespace

bool is_built() {
  return true;
}

std::string words_of(int error) {
  const auto code = static_cast<cudaError_t>(error);
  return std::string(cudaGetErrorString(code)) + " (" + cudaGetErrorName(code) + ")";
}

bool is_chosen() {
  using GetCurrent = CUresult (*)(CUcontext*);
  const auto get_current = driver<GetCurrent>("cuCtxGetCurrent");
  CUcontext context = nullptr;
  return get_current != nullptr && get_current(&context) == CUDA_SUCCESS && context != nullptr;
}

void choose() {
  static_cast<void>(cudaFree(nullptr));
}

int make_stream(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
}

void drop_stream(cudaStream_t stream) {
  static_cast<void>(cudaStreamDestroy(stream));
}

int wait_for(cudaStream_t stream) {
  return cudaStreamSynchronize(stream);
}

int get_value(void* value, const void* source, std::size_t bytes, int pe, cudaStream_t stream) {
  // Pinned host memory that the kernel writes to. Never freed; the CUDA runtime releases it when
  // the process ends.
  static void* page = nullptr;
  if (page == nullptr) {
    if (const int error = cudaMallocHost(&page, sizeof(std::uint64_t)); error != cudaSuccess) {
      return error;
    }
  }
  int error = enqueue_get_value(page, source, bytes, pe, stream);
  error = error != cudaSuccess ? error : static_cast<int>(cudaStreamSynchronize(stream));
  std::memcpy(value, page, bytes);
  return error;
}

int pin(void* address, std::size_t bytes) {
  const cudaError_t error = cudaHostRegister(address, bytes, cudaHostRegisterDefault);
  return error == cudaErrorHostMemoryAlreadyRegistered ? cudaSuccess : error;
}

void unpin(void* address) {
  static_cast<void>(cudaHostUnregister(address));
}

bool is_gpu_memory(const void* address) {
  cudaPointerAttributes attributes{};
  return cudaPointerGetAttributes(&attributes, address) == cudaSuccess &&
         (attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged);
}

ModuleResult upload_state(CUmodule module) {
  return upload("cuModuleGetGlobal", module);
}

ModuleResult upload_state(CUlibrary library) {
  return upload("cuLibraryGetGlobal", library);
}

}  // namespace weft::nvshmem::gpu
