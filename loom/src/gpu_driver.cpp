// Threads: any.
#include "loom/src/gpu_driver.hpp"

#include <array>
#include <cstdio>
#include <cstring>
#include <deque>

#include <dlfcn.h>
#include <fmt/format.h>

namespace loom {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

struct Loaded {
  GpuDriver driver{};
  std::string why;  // empty: it is there
};

template <typename Function>
void find(Loaded& loaded, void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr && loaded.why.empty()) {
    loaded.why =
        fmt::format("{} has no {}; a driver of CUDA 12 or later is needed", kLibrary, name);
  }
}

// Names with a version where cuda.h gives the plain name to it.
Loaded load() {
  Loaded loaded;
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    loaded.why = fmt::format("no driver of CUDA on this machine ({} was not found)", kLibrary);
    return loaded;
  }
  GpuDriver& d = loaded.driver;
  find(loaded, library, d.init, "cuInit");
  find(loaded, library, d.device_count, "cuDeviceGetCount");
  find(loaded, library, d.device_uuid, "cuDeviceGetUuid_v2");
  find(loaded, library, d.retain_context, "cuDevicePrimaryCtxRetain");
  find(loaded, library, d.push_context, "cuCtxPushCurrent_v2");
  find(loaded, library, d.pop_context, "cuCtxPopCurrent_v2");
  find(loaded, library, d.pointer_attribute, "cuPointerGetAttribute");
  find(loaded, library, d.address_range, "cuMemGetAddressRange_v2");
  find(loaded, library, d.ipc_handle, "cuIpcGetMemHandle");
  find(loaded, library, d.ipc_open, "cuIpcOpenMemHandle_v2");
  find(loaded, library, d.ipc_close, "cuIpcCloseMemHandle");
  find(loaded, library, d.retain_allocation, "cuMemRetainAllocationHandle");
  find(loaded, library, d.release_allocation, "cuMemRelease");
  find(loaded, library, d.export_allocation, "cuMemExportToShareableHandle");
  find(loaded, library, d.import_allocation, "cuMemImportFromShareableHandle");
  find(loaded, library, d.reserve, "cuMemAddressReserve");
  find(loaded, library, d.unreserve, "cuMemAddressFree");
  find(loaded, library, d.map, "cuMemMap");
  find(loaded, library, d.unmap, "cuMemUnmap");
  find(loaded, library, d.set_access, "cuMemSetAccess");
  find(loaded, library, d.create_stream, "cuStreamCreate");
  find(loaded, library, d.wait_for_stream, "cuStreamSynchronize");
  find(loaded, library, d.copy, "cuMemcpyAsync");
  find(loaded, library, d.create_event, "cuEventCreate");
  find(loaded, library, d.record_event, "cuEventRecord");
  find(loaded, library, d.query_event, "cuEventQuery");
  find(loaded, library, d.error_string, "cuGetErrorString");
  if (loaded.why.empty()) {
    if (const CUresult error = d.init(0); error != CUDA_SUCCESS) {
      loaded.why = fmt::format("cuInit failed with CUresult {}", static_cast<int>(error));
    }
  }
  return loaded;
}

const Loaded& loaded() {
  static const Loaded kLoaded = load();
  return kLoaded;
}

// Never destroyed: the engine's thread may outlive main().
std::deque<Gpu>& all_gpus() {
  static auto* const gpus = [] {
    auto* made = new std::deque<Gpu>;
    for (int index = 0; index < gpu_count(); ++index) {
      made->emplace_back(*gpu_driver(), index);
    }
    return made;
  }();
  return *gpus;
}

}  // namespace

const GpuDriver* gpu_driver() {
  return loaded().why.empty() ? &loaded().driver : nullptr;
}

const std::string& why_no_gpu() {
  return loaded().why;
}

std::string words_of(CUresult error) {
  const char* text = nullptr;
  gpu_driver()->error_string(error, &text);
  return text == nullptr ? fmt::format("CUresult {}", static_cast<int>(error)) : text;
}

CUresult Gpu::open() {
  const std::lock_guard guard(lock_);
  if (stream_ != nullptr) {
    return CUDA_SUCCESS;
  }
  CUdevice device = index_;  // a device's handle is its index
  if (const CUresult error = driver_.retain_context(&context_, device); error != CUDA_SUCCESS) {
    return error;
  }
  const CurrentGpu current(*this);
  // Of its own: it does not wait for the client's default stream.
  return driver_.create_stream(&stream_, CU_STREAM_NON_BLOCKING);
}

CUevent Gpu::take_event() {
  const std::lock_guard guard(lock_);
  CUevent event = nullptr;
  if (!events_.empty()) {
    event = events_.back();
    events_.pop_back();
  } else if (driver_.create_event(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    event = nullptr;
  }
  return event;
}

void Gpu::give_event(CUevent event) {
  const std::lock_guard guard(lock_);
  events_.push_back(event);
}

int gpu_count() {
  int count = 0;
  const GpuDriver* driver = gpu_driver();
  return driver != nullptr && driver->device_count(&count) == CUDA_SUCCESS ? count : 0;
}

Gpu* open_gpu(int index) {
  if (index < 0 || index >= static_cast<int>(all_gpus().size())) {
    return nullptr;
  }
  Gpu& gpu = all_gpus()[static_cast<std::size_t>(index)];
  if (const CUresult error = gpu.open(); error != CUDA_SUCCESS) {
    fmt::print(stderr, "loom: GPU {} cannot be used: {}\n", index, words_of(error));
    return nullptr;
  }
  return &gpu;
}

int find_gpu(const std::byte* uuid) {
  for (int index = 0; index < gpu_count(); ++index) {
    CUuuid here{};
    if (gpu_driver()->device_uuid(&here, index) == CUDA_SUCCESS &&
        std::memcmp(&here, uuid, sizeof(here)) == 0) {
      return index;
    }
  }
  return -1;
}

CurrentGpu::CurrentGpu(const Gpu& gpu) {
  gpu_driver()->push_context(gpu.context());
}

CurrentGpu::~CurrentGpu() {
  CUcontext before = nullptr;
  gpu_driver()->pop_context(&before);
}

}  // namespace loom
