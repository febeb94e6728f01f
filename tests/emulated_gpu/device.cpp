// What the emulated machine says of itself, and the driver's functions by their names.
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "tests/emulated_gpu/block.hpp"
#include "tests/emulated_gpu/driver.hpp"
#include "tests/emulated_gpu/gpu.hpp"

namespace weft_emulated {

thread_local int current_gpu = 0;
thread_local CUcontext current_context = nullptr;

namespace {

// CUDA 13.0.
constexpr int kVersion = 13000;

int number_from(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

// A context is its GPU's number, from 1 on.
CUcontext context_of(int gpu) {
  return reinterpret_cast<CUcontext>(static_cast<std::intptr_t>(gpu) + 1);
}

}  // namespace

const Machine& machine() {
  static const Machine one{number_from("EMULATED_GPU_COUNT", 8),
                           number_from("EMULATED_GPU_SMS", 4)};
  return one;
}

bool admits_nics() {
  return std::getenv("EMULATED_GPU_ADMITS_NICS") != nullptr;
}

int residency(int threads, std::size_t shared_bytes) {
  const int by_threads = std::min(kThreadsOfProcessor / threads, kBlocksOfProcessor);
  return shared_bytes == 0 ? by_threads
                           : std::min(by_threads, static_cast<int>(kSharedBytesMax / shared_bytes));
}

void enter() {
  if (current_context == nullptr) {
    current_context = context_of(current_gpu);
  }
}

namespace {

CUresult device_get_attribute(int* value, CUdevice_attribute attribute, CUdevice /*gpu*/) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED ||
                   attribute == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
               ? 1
               : 0;
  if (attribute == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING) {
    *value = CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES;
  }
  if (attribute == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED) {
    *value = admits_nics() ? 1 : 0;
  }
  return CUDA_SUCCESS;
}

CUresult ctx_get_current(CUcontext* context) {
  *context = current_context;
  return CUDA_SUCCESS;
}

CUresult ctx_create(CUcontext* context,
                    CUexecAffinityParam* /*affinity*/,
                    int /*count*/,
                    unsigned int /*flags*/,
                    CUdevice gpu) {
  *context = current_context = context_of(gpu);
  return CUDA_SUCCESS;
}

CUresult ctx_destroy(CUcontext /*context*/) {
  return CUDA_SUCCESS;
}

CUresult ctx_set_current(CUcontext context) {
  current_context = context;
  return CUDA_SUCCESS;
}

CUresult ctx_set_limit(CUlimit /*limit*/, std::size_t /*value*/) {
  return CUDA_SUCCESS;
}

CUresult ctx_get_stream_priority_range(int* lowest, int* highest) {
  *lowest = *highest = 0;
  return CUDA_SUCCESS;
}

CUresult result_of(cudaError_t error) {
  return error == cudaSuccess                         ? CUDA_SUCCESS
         : error == cudaErrorNotReady                 ? CUDA_ERROR_NOT_READY
         : error == cudaErrorStreamCaptureUnsupported ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                                                      : CUDA_ERROR_LAUNCH_FAILED;
}

CUresult stream_create_with_priority(CUstream* stream, unsigned int flags, int priority) {
  return result_of(cudaStreamCreateWithPriority(stream, flags, priority));
}

CUresult stream_destroy(CUstream stream) {
  return result_of(cudaStreamDestroy(stream));
}

CUresult stream_synchronize(CUstream stream) {
  return result_of(cudaStreamSynchronize(stream));
}

CUresult event_create(CUevent* event, unsigned int flags) {
  return result_of(cudaEventCreateWithFlags(event, flags));
}

CUresult event_destroy(CUevent event) {
  return result_of(cudaEventDestroy(event));
}

CUresult event_record(CUevent event, CUstream stream) {
  return result_of(cudaEventRecord(event, stream));
}

CUresult event_query(CUevent event) {
  return result_of(cudaEventQuery(event));
}

CUresult memcpy_async(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return result_of(cudaMemcpyAsync(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from),
                                   bytes, cudaMemcpyDefault, stream));
}

CUresult memcpy_2d_async(const CUDA_MEMCPY2D* copy, CUstream stream) {
  const void* from = copy->srcMemoryType == CU_MEMORYTYPE_HOST
                         ? copy->srcHost
                         : reinterpret_cast<const void*>(copy->srcDevice);
  return result_of(cudaMemcpy2DAsync(reinterpret_cast<void*>(copy->dstDevice), copy->dstPitch, from,
                                     copy->srcPitch, copy->WidthInBytes, copy->Height,
                                     cudaMemcpyDefault, stream));
}

CUresult thread_exchange_stream_capture_mode(CUstreamCaptureMode* mode) {
  auto of_runtime = static_cast<cudaStreamCaptureMode>(*mode);
  const CUresult error = result_of(cudaThreadExchangeStreamCaptureMode(&of_runtime));
  *mode = static_cast<CUstreamCaptureMode>(of_runtime);
  return error;
}

CUresult get_error_string(CUresult error, const char** text) {
  *text = error == CUDA_SUCCESS ? "no error" : "an error of the emulated GPU";
  return CUDA_SUCCESS;
}

CUresult is_not_there() {
  return CUDA_ERROR_NOT_SUPPORTED;
}

void* entry_of(const std::string& name) {
  static const std::map<std::string, void*> kEntries = {
      {"cuMemAddressReserve", reinterpret_cast<void*>(&driver::mem_address_reserve)},
      {"cuMemAddressFree", reinterpret_cast<void*>(&driver::mem_address_free)},
      {"cuMemCreate", reinterpret_cast<void*>(&driver::mem_create)},
      {"cuMemRelease", reinterpret_cast<void*>(&driver::mem_release)},
      {"cuMemMap", reinterpret_cast<void*>(&driver::mem_map)},
      {"cuMemUnmap", reinterpret_cast<void*>(&driver::mem_unmap)},
      {"cuMemSetAccess", reinterpret_cast<void*>(&driver::mem_set_access)},
      {"cuMemGetAllocationGranularity",
       reinterpret_cast<void*>(&driver::mem_get_allocation_granularity)},
      {"cuMemExportToShareableHandle",
       reinterpret_cast<void*>(&driver::mem_export_to_shareable_handle)},
      {"cuMemImportFromShareableHandle",
       reinterpret_cast<void*>(&driver::mem_import_from_shareable_handle)},
      {"cuMemGetHandleForAddressRange", reinterpret_cast<void*>(&is_not_there)},
      {"cuMemGetAddressRange", reinterpret_cast<void*>(&driver::mem_get_address_range)},
      {"cuMemRetainAllocationHandle",
       reinterpret_cast<void*>(&driver::mem_retain_allocation_handle)},
      {"cuMemGetAllocationPropertiesFromHandle",
       reinterpret_cast<void*>(&driver::mem_get_allocation_properties)},
      {"cuPointerGetAttribute", reinterpret_cast<void*>(&driver::pointer_get_attribute)},
      {"cuDeviceGetAttribute", reinterpret_cast<void*>(&device_get_attribute)},
      {"cuCtxGetCurrent", reinterpret_cast<void*>(&ctx_get_current)},
      {"cuCtxCreate", reinterpret_cast<void*>(&ctx_create)},
      {"cuCtxDestroy", reinterpret_cast<void*>(&ctx_destroy)},
      {"cuCtxSetCurrent", reinterpret_cast<void*>(&ctx_set_current)},
      {"cuCtxSetLimit", reinterpret_cast<void*>(&ctx_set_limit)},
      {"cuCtxGetStreamPriorityRange", reinterpret_cast<void*>(&ctx_get_stream_priority_range)},
      {"cuStreamCreateWithPriority", reinterpret_cast<void*>(&stream_create_with_priority)},
      {"cuStreamDestroy", reinterpret_cast<void*>(&stream_destroy)},
      {"cuStreamSynchronize", reinterpret_cast<void*>(&stream_synchronize)},
      {"cuEventCreate", reinterpret_cast<void*>(&event_create)},
      {"cuEventDestroy", reinterpret_cast<void*>(&event_destroy)},
      {"cuEventRecord", reinterpret_cast<void*>(&event_record)},
      {"cuEventQuery", reinterpret_cast<void*>(&event_query)},
      {"cuMemcpyAsync", reinterpret_cast<void*>(&memcpy_async)},
      {"cuMemcpy2DAsync", reinterpret_cast<void*>(&memcpy_2d_async)},
      {"cuThreadExchangeStreamCaptureMode",
       reinterpret_cast<void*>(&thread_exchange_stream_capture_mode)},
      {"cuGetErrorString", reinterpret_cast<void*>(&get_error_string)},
  };
  const auto found = kEntries.find(name);
  return found == kEntries.end() ? nullptr : found->second;
}

}  // namespace
}  // namespace weft_emulated

using namespace weft_emulated;

extern "C" {

cudaError_t cudaGetDriverEntryPointByVersion(const char* name,
                                             void** entry,
                                             unsigned int /*version*/,
                                             unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* result) {
  *entry = entry_of(name);
  *result = *entry == nullptr ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = machine().gpus;
  return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t cudaGetDevice(int* gpu) {
  *gpu = current_gpu;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int gpu) {
  if (gpu < 0 || gpu >= machine().gpus) {
    return cudaErrorInvalidDevice;
  }
  current_gpu = gpu;
  current_context = context_of(gpu);
  return is_lost() ? cudaErrorLaunchFailure : cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int gpu) {
  *properties = {};
  std::strcpy(properties->name, "Emulated GPU");
  properties->uuid.bytes[0] = static_cast<char>(gpu + 1);
  properties->totalGlobalMem = kMemoryOfGpu;
  properties->pciBusID = gpu + 1;
  properties->major = 9;
  properties->multiProcessorCount = machine().processors;
  properties->warpSize = 32;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* name, int bytes, int gpu) {
  std::snprintf(name, static_cast<std::size_t>(bytes), "0000:%02x:00.0", gpu + 1);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int /*gpu*/) {
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = machine().processors;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(kSharedBytesMax);
      return cudaSuccess;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = kThreadsOfProcessor;
      return cudaSuccess;
    case cudaDevAttrCooperativeLaunch:
      *value = 1;
      return cudaSuccess;
    default:
      *value = 0;
      return cudaSuccess;
  }
}

cudaError_t cudaDeviceGetP2PAttribute(int* value,
                                      cudaDeviceP2PAttr attribute,
                                      int /*from*/,
                                      int /*to*/) {
  *value =
      attribute == cudaDevP2PAttrAccessSupported || attribute == cudaDevP2PAttrNativeAtomicSupported
          ? 1
          : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  *lowest = *highest = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTarget /*target*/,
                                               cudaFlushGPUDirectRDMAWritesScope /*scope*/) {
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* /*kernel*/) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* /*kernel*/,
                                 cudaFuncAttribute /*attribute*/,
                                 int value) {
  return value > static_cast<int>(kSharedBytesMax) ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                          const void* /*kernel*/,
                                                          int threads,
                                                          size_t shared_bytes) {
  *blocks = residency(threads, shared_bytes);
  return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t error) {
  return error == cudaSuccess              ? "cudaSuccess"
         : error == cudaErrorLaunchFailure ? "cudaErrorLaunchFailure"
                                           : "cudaError";
}

const char* cudaGetErrorString(cudaError_t error) {
  static thread_local std::string text;
  text = error == cudaSuccess
             ? "no error"
             : "error " + std::to_string(static_cast<int>(error)) + " of the emulated GPU";
  return text.c_str();
}
}
