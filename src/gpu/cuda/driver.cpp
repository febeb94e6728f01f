#include "src/gpu/cuda/driver.hpp"

namespace weft::gpu {
namespace {

// The function versions of CUDA 12.4, the oldest that Weft supports.
constexpr unsigned int kVersion = 12040;

template <typename Function>
void find(Function& function, const char* name) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &entry, kVersion, cudaEnableDefault, &found);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(name, &entry, cudaEnableDefault, &found);
#endif
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) {
    fail(Status::InvalidArgument,
         "the NVIDIA driver has no {}: {}; install a driver of CUDA 12.4 or later", name,
         error != cudaSuccess ? words(error) : "it is too old");
  }
  function = reinterpret_cast<Function>(entry);
}

Driver load() {
  Driver d{};
  find(d.mem_address_reserve, "cuMemAddressReserve");
  find(d.mem_address_free, "cuMemAddressFree");
  find(d.mem_create, "cuMemCreate");
  find(d.mem_release, "cuMemRelease");
  find(d.mem_map, "cuMemMap");
  find(d.mem_unmap, "cuMemUnmap");
  find(d.mem_set_access, "cuMemSetAccess");
  find(d.mem_get_allocation_granularity, "cuMemGetAllocationGranularity");
  find(d.mem_export_to_shareable_handle, "cuMemExportToShareableHandle");
  find(d.mem_import_from_shareable_handle, "cuMemImportFromShareableHandle");
  find(d.mem_get_handle_for_address_range, "cuMemGetHandleForAddressRange");
  find(d.mem_get_address_range, "cuMemGetAddressRange");
  find(d.mem_retain_allocation_handle, "cuMemRetainAllocationHandle");
  find(d.mem_get_allocation_properties, "cuMemGetAllocationPropertiesFromHandle");
  find(d.pointer_get_attribute, "cuPointerGetAttribute");
  find(d.device_get_attribute, "cuDeviceGetAttribute");
  find(d.ctx_get_current, "cuCtxGetCurrent");
  find(d.ctx_create, "cuCtxCreate");
  find(d.ctx_destroy, "cuCtxDestroy");
  find(d.ctx_set_current, "cuCtxSetCurrent");
  find(d.ctx_set_limit, "cuCtxSetLimit");
  find(d.ctx_get_stream_priority_range, "cuCtxGetStreamPriorityRange");
  find(d.stream_create_with_priority, "cuStreamCreateWithPriority");
  find(d.stream_destroy, "cuStreamDestroy");
  find(d.stream_synchronize, "cuStreamSynchronize");
  find(d.event_create, "cuEventCreate");
  find(d.event_destroy, "cuEventDestroy");
  find(d.event_record, "cuEventRecord");
  find(d.event_query, "cuEventQuery");
  find(d.memcpy_async, "cuMemcpyAsync");
  find(d.memcpy_2d_async, "cuMemcpy2DAsync");
  find(d.thread_exchange_stream_capture_mode, "cuThreadExchangeStreamCaptureMode");
  find(d.get_error_string, "cuGetErrorString");
  return d;
}

}  // namespace

const Driver& driver() {
  static const Driver kDriver = load();
  return kDriver;
}

std::string words(cudaError_t error) {
  return fmt::format("{} ({})", cudaGetErrorString(error), cudaGetErrorName(error));
}

std::string words(CUresult error) {
  const char* text = nullptr;
  driver().get_error_string(error, &text);
  return fmt::format("{} (CUresult {})", text == nullptr ? "unknown" : text,
                     static_cast<int>(error));
}

}  // namespace weft::gpu
