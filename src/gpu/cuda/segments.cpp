#include "src/gpu/segments.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/file_descriptor.hpp"
#include "src/base/units.hpp"
#include "src/gpu/buffer.hpp"
#include "src/gpu/cuda/driver.hpp"

namespace weft::gpu {
namespace {

// Fabric handles require a channel of the IMEX service; its devices are listed here.
constexpr const char* kFabricChannels = "/dev/nvidia-caps-imex-channels";

[[noreturn]] void fail_allocation(const Device& device, std::uint64_t bytes, std::string_view why) {
  std::size_t free_bytes = 0;
  std::size_t total = 0;
  cudaMemGetInfo(&free_bytes, &total);
  fail(Status::OutOfMemory,
       "WEFT_DEVICE_HEAP_SIZE: {} do not fit onto GPU {} ({}), of whose {} {} are free: {}; lower "
       "it",
       format_bytes(bytes), device.index, device.name, format_bytes(total),
       format_bytes(free_bytes), why);
}

// Duplicates descriptor `descriptor` of process `pid`.
FileDescriptor take_descriptor(const SegmentOffer& offer, std::string_view whose) {
  const FileDescriptor process(
      static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(offer.pid), 0)));
  FileDescriptor copy(process.get() < 0 ? -1
                                        : static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(),
                                                                     offer.descriptor, 0)));
  if (copy.get() < 0) {
    fail(
        "taking the handle of {}'s device memory failed: {}; allow ptrace between the PEs "
        "(kernel.yama.ptrace_scope, or SYS_PTRACE for a container), or set WEFT_DEVICE_MEMORY=ipc",
        whose, errno_words(errno));
  }
  return copy;
}

// ---- Virtual memory management ----------------------------------------------------------------------

CUmemAllocationProp properties_of(const Device& device, CUmemAllocationHandleType handles) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = handles;
  properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device.index};
  properties.allocFlags.gpuDirectRDMACapable = device.has_rdma ? 1 : 0;
  return properties;
}

class VirtualSegments final : public Segments {
 public:
  VirtualSegments(const Device& device, const SegmentPlan& plan) : device_(device), plan_(plan) {
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // so that peers may duplicate the descriptor
    allocate();
    check(driver().mem_address_reserve(&range_, plan_.slot_count * bytes_, granularity_, 0, 0),
          fmt::format("reserving addresses for the device heaps of {} PEs", plan_.slot_count));
    place(plan_.my_slot, own_);
    clear(base(), bytes_);
  }

  ~VirtualSegments() override {
    for (std::uint32_t slot = 0; slot < mapped_.size(); ++slot) {
      if (mapped_[slot] != 0) {
        driver().mem_unmap(range_ + slot * bytes_, bytes_);
        driver().mem_release(mapped_[slot]);
      }
    }
    driver().mem_address_free(range_, plan_.slot_count * bytes_);
  }

  [[nodiscard]] std::byte* base() const override { return at(plan_.my_slot); }

  [[nodiscard]] std::uint64_t size() const override { return bytes_; }

  [[nodiscard]] std::uint64_t stride() const override { return bytes_; }

  [[nodiscard]] SegmentOffer offer() const override {
    SegmentOffer offer{.descriptor = descriptor_.get(), .pid = ::getpid(), .bytes = bytes_};
    if (is_fabric_) {
      offer.kind = HandleKind::Fabric;
      check(driver().mem_export_to_shareable_handle(offer.handle.data(), own_,
                                                    CU_MEM_HANDLE_TYPE_FABRIC, 0),
            "exporting the device heap as a fabric handle");
    }
    return offer;
  }

  std::byte* map(std::uint32_t slot, const SegmentOffer& offer, std::string_view whose) override {
    CUmemGenericAllocationHandle handle{};
    SegmentOffer copy = offer;
    if (offer.kind == HandleKind::Fabric) {
      check(driver().mem_import_from_shareable_handle(&handle, copy.handle.data(),
                                                      CU_MEM_HANDLE_TYPE_FABRIC),
            fmt::format("importing the device heap of {}", whose));
    } else {
      const FileDescriptor descriptor = take_descriptor(offer, whose);
      check(driver().mem_import_from_shareable_handle(
                &handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor.get())),
                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            fmt::format("importing the device heap of {}", whose));
    }
    try {
      place(slot, handle);
    } catch (const Error& error) {
      fail(Status::InvalidArgument,
           "GPU {} cannot reach the memory of {}'s GPU: {}; where NVLink or PCIe peer-to-peer is "
           "missing or forbidden, set WEFT_NODE_SIZE=1 and the PEs use the rails",
           device_.index, whose, error.what());
    }
    return at(slot);
  }

  void close_offer() override { descriptor_ = FileDescriptor(); }

 private:
  [[nodiscard]] std::byte* at(std::uint32_t slot) const {
    return reinterpret_cast<std::byte*>(range_ + slot * bytes_);
  }

  // Allocates physical memory with a handle that peers can import.
  void allocate() {
    CUmemAllocationProp properties =
        properties_of(device_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    check(driver().mem_get_allocation_granularity(&granularity_, &properties,
                                                  CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
          "querying the granularity of device memory");
    bytes_ = (plan_.bytes + granularity_ - 1) / granularity_ * granularity_;
    if (device_.has_fabric_handles && std::filesystem::exists(kFabricChannels)) {
      // If no channel was granted, fabric handles fail, and file descriptors are used.
      const CUmemAllocationProp fabric = properties_of(device_, CU_MEM_HANDLE_TYPE_FABRIC);
      is_fabric_ = driver().mem_create(&own_, bytes_, &fabric, 0) == CUDA_SUCCESS;
    }
    if (is_fabric_) {
      return;
    }
    if (const CUresult error = driver().mem_create(&own_, bytes_, &properties, 0);
        error != CUDA_SUCCESS) {
      fail_allocation(device_, bytes_, words(error));
    }
    int descriptor = -1;
    check(driver().mem_export_to_shareable_handle(&descriptor, own_,
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          "exporting the device heap");
    descriptor_ = FileDescriptor(descriptor);
  }

  // Maps `handle` at `slot` for this GPU; takes ownership of it.
  void place(std::uint32_t slot, CUmemGenericAllocationHandle handle) {
    mapped_.resize(plan_.slot_count, 0);
    const CUdeviceptr address = range_ + slot * bytes_;
    if (const CUresult error = driver().mem_map(address, bytes_, 0, handle, 0);
        error != CUDA_SUCCESS) {
      driver().mem_release(handle);
      check(error, "cuMemMap");
    }
    mapped_[slot] = handle;
    const CUmemAccessDesc access{
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device_.index},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    check(driver().mem_set_access(address, bytes_, &access, 1), "cuMemSetAccess");
  }

  Device device_;
  SegmentPlan plan_;
  std::uint64_t bytes_ = 0;
  std::size_t granularity_ = 0;
  bool is_fabric_ = false;
  CUmemGenericAllocationHandle own_{};
  FileDescriptor descriptor_;
  CUdeviceptr range_ = 0;
  std::vector<CUmemGenericAllocationHandle> mapped_;  // by slot
};

// ---- cudaMalloc and CUDA's IPC handles ---------------------------------------------------------------

class IpcSegments final : public Segments {
 public:
  IpcSegments(const Device& device, const SegmentPlan& plan) : plan_(plan) {
    void* memory = nullptr;
    if (const cudaError_t error = cudaMalloc(&memory, plan.bytes); error != cudaSuccess) {
      fail_allocation(device, plan.bytes, words(error));
    }
    base_ = static_cast<std::byte*>(memory);
    clear(base_, plan.bytes);
  }

  ~IpcSegments() override {
    for (void* peer : opened_) {
      cudaIpcCloseMemHandle(peer);
    }
    cudaFree(base_);
  }

  [[nodiscard]] std::byte* base() const override { return base_; }

  [[nodiscard]] std::uint64_t size() const override { return plan_.bytes; }

  [[nodiscard]] std::uint64_t stride() const override { return 0; }

  [[nodiscard]] SegmentOffer offer() const override {
    SegmentOffer offer{.kind = HandleKind::Ipc, .pid = ::getpid(), .bytes = plan_.bytes};
    cudaIpcMemHandle_t handle{};
    static_assert(sizeof(handle) == sizeof(offer.handle));
    check(cudaIpcGetMemHandle(&handle, base_), "exporting the device heap as an IPC handle");
    std::memcpy(offer.handle.data(), &handle, sizeof(handle));
    return offer;
  }

  std::byte* map(std::uint32_t /*slot*/,
                 const SegmentOffer& offer,
                 std::string_view whose) override {
    cudaIpcMemHandle_t handle{};
    std::memcpy(&handle, offer.handle.data(), sizeof(handle));
    void* memory = nullptr;
    check(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess),
          fmt::format("mapping the device heap of {} (where peer-to-peer is missing or forbidden, "
                      "set WEFT_NODE_SIZE=1 and the PEs use the rails)",
                      whose),
          Status::InvalidArgument);
    opened_.push_back(memory);
    return static_cast<std::byte*>(memory);
  }

  void close_offer() override {}

 private:
  SegmentPlan plan_;
  std::byte* base_ = nullptr;
  std::vector<void*> opened_;
};

}  // namespace

std::unique_ptr<Segments> make_segments(const Device& device, const SegmentPlan& plan) {
  if (plan.kind == MemoryKind::Ipc) {
    return std::make_unique<IpcSegments>(device, plan);
  }
  return std::make_unique<VirtualSegments>(device, plan);
}

}  // namespace weft::gpu
