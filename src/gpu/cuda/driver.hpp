// CUDA's driver functions by their entry points, and the texts of CUDA's errors. Resolved at run
// time, so that libweft loads on a machine without a driver.
//
// Threads: any.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "src/base/error.hpp"

namespace weft::gpu {

struct Driver {
  decltype(&::cuMemAddressReserve) mem_address_reserve;
  decltype(&::cuMemAddressFree) mem_address_free;
  decltype(&::cuMemCreate) mem_create;
  decltype(&::cuMemRelease) mem_release;
  decltype(&::cuMemMap) mem_map;
  decltype(&::cuMemUnmap) mem_unmap;
  decltype(&::cuMemSetAccess) mem_set_access;
  decltype(&::cuMemGetAllocationGranularity) mem_get_allocation_granularity;
  decltype(&::cuMemExportToShareableHandle) mem_export_to_shareable_handle;
  decltype(&::cuMemImportFromShareableHandle) mem_import_from_shareable_handle;
  decltype(&::cuMemGetHandleForAddressRange) mem_get_handle_for_address_range;
  decltype(&::cuMemGetAddressRange) mem_get_address_range;
  decltype(&::cuMemRetainAllocationHandle) mem_retain_allocation_handle;
  decltype(&::cuMemGetAllocationPropertiesFromHandle) mem_get_allocation_properties;
  decltype(&::cuPointerGetAttribute) pointer_get_attribute;
  decltype(&::cuDeviceGetAttribute) device_get_attribute;
  decltype(&::cuCtxGetCurrent) ctx_get_current;
  CUresult(CUDAAPI* ctx_create)(CUcontext*, CUexecAffinityParam*, int, unsigned int, CUdevice);
  decltype(&::cuCtxDestroy) ctx_destroy;
  decltype(&::cuCtxSetCurrent) ctx_set_current;
  decltype(&::cuCtxSetLimit) ctx_set_limit;
  decltype(&::cuCtxGetStreamPriorityRange) ctx_get_stream_priority_range;
  decltype(&::cuStreamCreateWithPriority) stream_create_with_priority;
  decltype(&::cuStreamDestroy) stream_destroy;
  decltype(&::cuStreamSynchronize) stream_synchronize;
  decltype(&::cuEventCreate) event_create;
  decltype(&::cuEventDestroy) event_destroy;
  decltype(&::cuEventRecord) event_record;
  decltype(&::cuEventQuery) event_query;
  decltype(&::cuMemcpyAsync) memcpy_async;
  decltype(&::cuMemcpy2DAsync) memcpy_2d_async;
  decltype(&::cuThreadExchangeStreamCaptureMode) thread_exchange_stream_capture_mode;
  decltype(&::cuGetErrorString) get_error_string;
};

// Throws if there is no driver, or if it lacks a function.
[[nodiscard]] const Driver& driver();

[[nodiscard]] std::string words(cudaError_t error);
[[nodiscard]] std::string words(CUresult error);

// Throws "`action` failed: CUDA's error text" unless the call succeeded.
inline void check(cudaError_t error, std::string_view action, Status status = Status::Internal) {
  if (error != cudaSuccess) {
    fail(status, "{} failed: {}", action, words(error));
  }
}

inline void check(CUresult error, std::string_view action, Status status = Status::Internal) {
  if (error != CUDA_SUCCESS) {
    fail(status, "{} failed: {}", action, words(error));
  }
}

}  // namespace weft::gpu
