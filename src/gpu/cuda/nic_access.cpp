#include "src/gpu/nic_access.hpp"

#include <unistd.h>

#include "src/gpu/cuda/driver.hpp"

namespace weft::gpu {
namespace {

int attribute(CUdevice_attribute which, const Device& device) {
  int value = 0;
  // A driver that does not know the attribute does not support the feature.
  return driver().device_get_attribute(&value, which, device.index) == CUDA_SUCCESS ? value : 0;
}

bool needs_flush(const Device& device) {
  return device.nic_writes_seen_by < device.nic_writes_read_by;
}

}  // namespace

bool has_driver() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess && version > 0;
}

std::string nic_refusal(const Device& device, MemoryKind kind) {
  if (kind == MemoryKind::Virtual && !device.has_rdma) {
    return fmt::format(
        "GPU {} ({}) lets no NIC into memory of virtual memory management; WEFT_DEVICE_MEMORY=ipc "
        "may do",
        device.index, device.name);
  }
  if (kind == MemoryKind::Ipc &&
      attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, device) == 0) {
    return fmt::format("GPU {} ({}) lets no NIC into its memory", device.index, device.name);
  }
  const int flushes = attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, device);
  if (needs_flush(device) && (flushes & CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST) == 0) {
    return fmt::format(
        "GPU {} ({}) does not order what NICs write{}, and offers no flush", device.index,
        device.name, device.nic_writes_seen_by == Seers::Owner ? " for the node's other GPUs" : "");
  }
  return "";
}

DmaBuf dma_buf_of(const Device& device, std::span<std::byte> memory) {
  if (!device.has_dma_buf) {
    return {.descriptor = {}, .why_not = "the GPU's driver gives none (open kernel modules do)"};
  }
  static const auto kPage = static_cast<CUdeviceptr>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<CUdeviceptr>(memory.data());
  const CUdeviceptr begin = first / kPage * kPage;
  const CUdeviceptr end = (first + memory.size() + kPage - 1) / kPage * kPage;
  int descriptor = -1;
  const CUresult error = driver().mem_get_handle_for_address_range(
      &descriptor, begin, end - begin, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  if (error != CUDA_SUCCESS) {
    return {.descriptor = {}, .why_not = "cuMemGetHandleForAddressRange failed: " + words(error)};
  }
  return {.descriptor = FileDescriptor(descriptor), .offset = first - begin, .why_not = ""};
}

bool show_nic_writes(const Device& device) noexcept {
  if (!needs_flush(device)) {
    return true;
  }
  use_device_once(device);
  return cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
                                            device.nic_writes_read_by == Seers::AllGpus
                                                ? cudaFlushGPUDirectRDMAWritesToAllDevices
                                                : cudaFlushGPUDirectRDMAWritesToOwner) ==
         cudaSuccess;
}

}  // namespace weft::gpu
