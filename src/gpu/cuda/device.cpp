#include "src/gpu/device.hpp"

#include <algorithm>

#include "src/gpu/cuda/driver.hpp"

namespace weft::gpu {
namespace {

constexpr int kDriverMin = 12040;

std::string version_words(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// The number of GPUs. Throws if this process has no driver, or the driver no GPU.
std::int32_t require_gpu() {
  int version = 0;
  check(cudaDriverGetVersion(&version), "querying the NVIDIA driver's version");
  if (version == 0) {
    fail(Status::InvalidArgument,
         "no NVIDIA driver was found (libcuda.so.1); install one, or do without weft_device_init: "
         "everything else of Weft works without a GPU");
  }
  if (version < kDriverMin) {
    fail(Status::InvalidArgument, "the NVIDIA driver is for CUDA {}; Weft needs one of {} or later",
         version_words(version), version_words(kDriverMin));
  }
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
    fail(Status::InvalidArgument,
         "no GPU is visible to this process: {}; look at nvidia-smi and CUDA_VISIBLE_DEVICES",
         words(error == cudaSuccess ? cudaErrorNoDevice : error));
  }
  return count;
}

bool has(CUdevice_attribute attribute, int device) {
  int value = 0;
  // A driver that does not know the attribute does not support the feature.
  return driver().device_get_attribute(&value, attribute, device) == CUDA_SUCCESS && value != 0;
}

}  // namespace

bool is_built_in() {
  return true;
}

std::int32_t device_count() {
  return require_gpu();
}

Device current_device() {
  require_gpu();
  std::int32_t index = -1;
  check(cudaGetDevice(&index), "querying the current GPU");
  check(cudaFree(nullptr), fmt::format("creating a CUDA context on GPU {}", index));
  return describe_device(index);
}

Device describe_device(std::int32_t index) {
  Device device;
  device.index = index;
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device.index), "querying the properties of the GPU");
  device.name = properties.name;
  std::copy_n(reinterpret_cast<const std::uint8_t*>(properties.uuid.bytes), device.uuid.size(),
              device.uuid.begin());
  device.pci = fmt::format("{:04x}:{:02x}:{:02x}.0", properties.pciDomainID, properties.pciBusID,
                           properties.pciDeviceID);
  device.bytes = properties.totalGlobalMem;
  check(cudaDriverGetVersion(&device.driver_version), "querying the NVIDIA driver's version");
  device.has_posix_handles =
      has(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device.index) &&
      has(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device.index);
  device.has_fabric_handles = has(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, device.index);
  device.has_rdma = has(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, device.index);
  device.has_dma_buf = has(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, device.index);
  int ordering = 0;
  driver().device_get_attribute(&ordering, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING,
                                device.index);
  device.nic_writes_seen_by =
      ordering >= CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES ? Seers::AllGpus
      : ordering >= CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER     ? Seers::Owner
                                                                 : Seers::Nobody;
  return device;
}

void use_device(const Device& device) {
  check(cudaSetDevice(device.index), fmt::format("selecting GPU {}", device.index));
}

void use_device_once(const Device& device) noexcept {
  thread_local std::int32_t current = -1;
  if (current != device.index && cudaSetDevice(device.index) == cudaSuccess) {
    current = device.index;
  }
}

namespace {

// The mode that the calling thread had; -1 if it cannot be changed.
int exchange_mode(CUstreamCaptureMode mode) noexcept {
  return driver().thread_exchange_stream_capture_mode(&mode) == CUDA_SUCCESS ? mode : -1;
}

}  // namespace

void ignore_captures() noexcept {
  exchange_mode(CU_STREAM_CAPTURE_MODE_RELAXED);
}

BorrowedThread::BorrowedThread() noexcept {
  try {
    CUcontext current = nullptr;
    driver().ctx_get_current(&current);
    context_ = current;
    mode_ = exchange_mode(CU_STREAM_CAPTURE_MODE_RELAXED);
  } catch (const Error&) {  // no driver, or one that is too old: weft_device_init says so
  }
}

BorrowedThread::~BorrowedThread() {
  if (mode_ == -1) {
    return;
  }
  exchange_mode(static_cast<CUstreamCaptureMode>(mode_));
  CUcontext current = nullptr;
  driver().ctx_get_current(&current);
  if (context_ != nullptr && current != context_) {
    driver().ctx_set_current(static_cast<CUcontext>(context_));
  }
}

namespace {

cudaPointerAttributes attributes_of(const void* address) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, address) != cudaSuccess) {
    cudaGetLastError();  // no driver: not an error of the program's
    return {};
  }
  return attributes;
}

}  // namespace

bool is_device_memory(const void* address) {
  return attributes_of(address).type == cudaMemoryTypeDevice;
}

bool is_reached_by_kernels(const void* address) {
  return attributes_of(address).devicePointer == address && address != nullptr;
}

}  // namespace weft::gpu
