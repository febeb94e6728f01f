// CUDA's driver, opened by name at run time: Loom is linked with nothing of it. And the GPUs of
// this process, each with its primary context and a stream of Loom's own.
//
// Threads: any.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace loom {

struct GpuDriver {
  decltype(&::cuInit) init;
  decltype(&::cuDeviceGetCount) device_count;
  decltype(&::cuDeviceGetUuid_v2) device_uuid;
  decltype(&::cuDevicePrimaryCtxRetain) retain_context;
  decltype(&::cuCtxPushCurrent) push_context;
  decltype(&::cuCtxPopCurrent) pop_context;
  decltype(&::cuPointerGetAttribute) pointer_attribute;
  decltype(&::cuMemGetAddressRange) address_range;
  decltype(&::cuIpcGetMemHandle) ipc_handle;
  decltype(&::cuIpcOpenMemHandle) ipc_open;
  decltype(&::cuIpcCloseMemHandle) ipc_close;
  decltype(&::cuMemRetainAllocationHandle) retain_allocation;
  decltype(&::cuMemRelease) release_allocation;
  decltype(&::cuMemExportToShareableHandle) export_allocation;
  decltype(&::cuMemImportFromShareableHandle) import_allocation;
  decltype(&::cuMemAddressReserve) reserve;
  decltype(&::cuMemAddressFree) unreserve;
  decltype(&::cuMemMap) map;
  decltype(&::cuMemUnmap) unmap;
  decltype(&::cuMemSetAccess) set_access;
  decltype(&::cuStreamCreate) create_stream;
  decltype(&::cuStreamSynchronize) wait_for_stream;
  decltype(&::cuMemcpyAsync) copy;
  decltype(&::cuEventCreate) create_event;
  decltype(&::cuEventRecord) record_event;
  decltype(&::cuEventQuery) query_event;
  decltype(&::cuGetErrorString) error_string;
};

// Null if there is none; why_no_gpu() says why.
[[nodiscard]] const GpuDriver* gpu_driver();
[[nodiscard]] const std::string& why_no_gpu();

[[nodiscard]] std::string words_of(CUresult error);

// One GPU as this process sees it.
class Gpu {
 public:
  Gpu(const GpuDriver& driver, int index) : driver_(driver), index_(index) {}

  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  // Takes the primary context and makes the stream, once.
  [[nodiscard]] CUresult open();

  [[nodiscard]] int index() const { return index_; }

  [[nodiscard]] CUcontext context() const { return context_; }

  [[nodiscard]] CUstream stream() const { return stream_; }

  // An event that is not in use; null if none can be made. The context is current.
  [[nodiscard]] CUevent take_event();
  void give_event(CUevent event);

 private:
  const GpuDriver& driver_;
  int index_;
  std::mutex lock_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::vector<CUevent> events_;
};

// How many this process sees; 0 without a driver.
[[nodiscard]] int gpu_count();

// One of them, open; null after saying why it cannot be opened.
[[nodiscard]] Gpu* open_gpu(int index);

// Whose UUID this is; -1 if this process does not see it.
[[nodiscard]] int find_gpu(const std::byte* uuid);

// The GPU's context is current in its lifetime.
class CurrentGpu {
 public:
  explicit CurrentGpu(const Gpu& gpu);
  CurrentGpu(const CurrentGpu&) = delete;
  CurrentGpu& operator=(const CurrentGpu&) = delete;
  ~CurrentGpu();
};

}  // namespace loom
