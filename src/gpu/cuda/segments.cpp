#include "src/gpu/segments.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/descriptor_offer.hpp"
#include "src/base/file_descriptor.hpp"
#include "src/base/units.hpp"
#include "src/gpu/buffer.hpp"
#include "src/gpu/cuda/driver.hpp"
#include "src/gpu/cuda/ipc_segments.hpp"

namespace weft::gpu {
namespace {

// Fabric handles require a channel of the IMEX service; its devices are listed here.
constexpr const char* kFabricChannels = "/dev/nvidia-caps-imex-channels";
// The offset and size of a SegmentPart (segments.hpp) are multiples of this.
constexpr std::uint64_t kPartUnit = std::uint64_t{2} << 20U;
// The largest alignment of a slot (the address range of one PE's heap), and so of a block. A larger
// one would cost no memory, only addresses.
constexpr std::uint64_t kAlignmentMax = std::uint64_t{4} << 30U;

[[noreturn]] void fail_growth(const Device& device, std::uint64_t bytes, std::string_view why) {
  fail(Status::OutOfMemory, "{} more of the device heap do not fit onto {}: {}",
       format_bytes(bytes), memory_words(device), why);
}

// A name of 32 characters, in the bytes that handles of other kinds use.
void write_name(DeviceSegmentOffer& offer, const std::string& name) {
  std::ranges::copy(name, offer.handle.begin());
}

std::string name_in(const DeviceSegmentOffer& offer) {
  const auto end = std::ranges::find(offer.handle, std::uint8_t{0});
  return {offer.handle.begin(), end};
}

// Duplicates the descriptor that another process offers: through its socket or, if that is in
// another network namespace, with pidfd_getfd(2), which needs the right to ptrace that process.
FileDescriptor take_descriptor(const DeviceSegmentOffer& offer, std::string_view whose) {
  if (FileDescriptor taken = take_offered(name_in(offer)); taken.is_open()) {
    return taken;
  }
  const std::string why = errno_words(errno);
  const FileDescriptor process(
      static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(offer.pid), 0)));
  FileDescriptor copy(process.get() < 0 ? -1
                                        : static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(),
                                                                     offer.descriptor, 0)));
  if (copy.get() < 0) {
    fail(
        "taking the handle of {}'s device memory failed: {} by its socket, {} by its process; let "
        "the PEs of a node share a network namespace and a user, or allow ptrace between them "
        "(kernel.yama.ptrace_scope, or SYS_PTRACE for a container), or set WEFT_DEVICE_MEMORY=ipc",
        whose, why, errno_words(errno));
  }
  return copy;
}

// ---- Virtual memory management ------------------------------------------------------------------

CUmemAllocationProp properties_of(const Device& device, CUmemAllocationHandleType handles) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = handles;
  properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device.index};
  properties.allocFlags.gpuDirectRDMACapable = device.has_rdma ? 1 : 0;
  return properties;
}

// Memory at the same part of each slot that is mapped.
struct MappedPart {
  SegmentPart part;
  CUmemGenericAllocationHandle own{};
  bool is_fabric = false;                            // the handle that peers import
  FileDescriptor descriptor;                         // of own memory, until it is closed
  std::unique_ptr<DescriptorOffer> sender;           // passes it to peers
  std::vector<CUmemGenericAllocationHandle> mapped;  // by slot
};

class VirtualSegments final : public Segments {
 public:
  VirtualSegments(const Device& device, const SegmentPlan& plan) : device_(device), plan_(plan) {
    first_.mapped.resize(plan_.slot_count, 0);
    allocate();
    reserve();
    place(first_, plan_.my_slot, first_.own);
    clear(base(), first_.part.bytes);
  }

  ~VirtualSegments() override {
    for (MappedPart& part : later_) {
      unmap(part);
    }
    unmap(first_);
    driver().mem_address_free(range_, plan_.slot_count * stride_);
  }

  [[nodiscard]] std::byte* base() const override { return at(plan_.my_slot); }

  [[nodiscard]] std::uint64_t size() const override { return first_.part.bytes; }

  [[nodiscard]] std::uint64_t stride() const override { return stride_; }

  [[nodiscard]] std::uint64_t reserved() const override { return reserved_; }

  [[nodiscard]] DeviceSegmentOffer offer() const override { return offer_of(first_); }

  std::byte* map(std::uint32_t slot,
                 const DeviceSegmentOffer& offer,
                 std::string_view whose) override {
    import(first_, slot, offer, whose);
    return at(slot);
  }

  void close_offer() override {
    close(first_);
    std::ranges::for_each(later_, &VirtualSegments::close);
  }

  DeviceSegmentOffer add_part(const SegmentPart& part) override {
    enter_context();
    MappedPart& added = later_.emplace_back();
    added.part = part;
    added.mapped.resize(plan_.slot_count, 0);
    try {
      if (const CUresult error = create(added); error != CUDA_SUCCESS) {
        fail_growth(device_, part.bytes, words(error));
      }
      place(added, plan_.my_slot, added.own);
      return offer_of(added);
    } catch (...) {
      drop_part(part);
      throw;
    }
  }

  DeviceSegmentOffer adopt_part(const SegmentPart& part, std::byte* memory) override {
    enter_context();
    MappedPart& added = later_.emplace_back();
    added.part = part;
    added.mapped.resize(plan_.slot_count, 0);
    try {
      retain(added, memory);
      place(added, plan_.my_slot, added.own);
      return offer_of(added);
    } catch (...) {
      drop_part(part);
      throw;
    }
  }

  void map_part(std::uint32_t slot,
                const SegmentPart& part,
                const DeviceSegmentOffer& offer,
                std::string_view whose) override {
    enter_context();
    const auto found = std::ranges::find(later_, part, &MappedPart::part);
    WEFT_CHECK(found != later_.end(), "no part at {}", part.offset);
    import(*found, slot, offer, whose);
  }

  void drop_part(const SegmentPart& part) noexcept override {
    const auto found = std::ranges::find(later_, part, &MappedPart::part);
    if (found != later_.end()) {
      unmap(*found);
      later_.erase(found);
    }
  }

 private:
  [[nodiscard]] std::byte* at(std::uint32_t slot) const {
    return reinterpret_cast<std::byte*>(range_ + slot * stride_);
  }

  // A thread that has not used CUDA before has no context.
  void enter_context() const {
    CUcontext current = nullptr;
    if (driver().ctx_get_current(&current) != CUDA_SUCCESS || current == nullptr) {
      use_device(device_);
    }
  }

  // Allocates the first part, and chooses the kind of handle for all.
  void allocate() {
    const CUmemAllocationProp properties =
        properties_of(device_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    check(driver().mem_get_allocation_granularity(&granularity_, &properties,
                                                  CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
          "querying the granularity of device memory");
    first_.part.bytes = (plan_.bytes + granularity_ - 1) / granularity_ * granularity_;
    if (plan_.may_use_fabric && device_.has_fabric_handles &&
        std::filesystem::exists(kFabricChannels)) {
      // If no channel was granted, fabric handles fail, and file descriptors are used.
      const CUmemAllocationProp fabric = properties_of(device_, CU_MEM_HANDLE_TYPE_FABRIC);
      is_fabric_ = driver().mem_create(&first_.own, first_.part.bytes, &fabric, 0) == CUDA_SUCCESS;
      first_.is_fabric = is_fabric_;
    }
    if (is_fabric_) {
      return;
    }
    if (const CUresult error = create(first_); error != CUDA_SUCCESS) {
      fail_allocation(device_, plan_, words(error));
    }
  }

  // Reserved addresses cost no memory, but RLIMIT_AS counts them. If the limit is too low, half as
  // much is reserved, and so on.
  void reserve() {
    reserved_ = first_.part.bytes;
    const bool can_add = kPartUnit % granularity_ == 0 && reserved_ % kPartUnit == 0;
    if (can_add) {
      reserved_ = std::max(reserved_, plan_.reserved_bytes / kPartUnit * kPartUnit);
    }
    CUresult error = CUDA_SUCCESS;
    while ((error = reserve_slots()) != CUDA_SUCCESS && reserved_ > first_.part.bytes) {
      reserved_ = std::max(first_.part.bytes, reserved_ / 2 / kPartUnit * kPartUnit);
    }
    check(error,
          fmt::format("reserving addresses for the device heaps of {} PEs", plan_.slot_count));
  }

  // Every slot begins at a multiple of the largest alignment that a block may have. If the driver
  // has no such range, slots have the driver's own granularity.
  CUresult reserve_slots() {
    const std::uint64_t alignment =
        std::max<std::uint64_t>(std::min(std::bit_floor(reserved_), kAlignmentMax), granularity_);
    stride_ = (reserved_ + alignment - 1) / alignment * alignment;
    if (driver().mem_address_reserve(&range_, plan_.slot_count * stride_, alignment, 0, 0) ==
        CUDA_SUCCESS) {
      return CUDA_SUCCESS;
    }
    stride_ = reserved_;
    return driver().mem_address_reserve(&range_, plan_.slot_count * stride_, granularity_, 0, 0);
  }

  // Allocates physical memory with a handle that peers can import.
  CUresult create(MappedPart& part) const {
    const CUmemAllocationProp properties = properties_of(
        device_, is_fabric_ ? CU_MEM_HANDLE_TYPE_FABRIC : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    CUmemGenericAllocationHandle handle{};
    const CUresult error = driver().mem_create(&handle, part.part.bytes, &properties, 0);
    if (error != CUDA_SUCCESS) {
      return error;
    }
    part.own = handle;
    part.is_fabric = is_fabric_;
    if (!is_fabric_) {
      offer_descriptor(part);
    }
    return CUDA_SUCCESS;
  }

  static void offer_descriptor(MappedPart& part) {
    int descriptor = -1;
    check(driver().mem_export_to_shareable_handle(&descriptor, part.own,
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          "exporting device memory");
    part.descriptor = FileDescriptor(descriptor);
    part.sender = std::make_unique<DescriptorOffer>(descriptor);
  }

  // Takes part in the ownership of the program's allocation at `memory`.
  void retain(MappedPart& part, std::byte* memory) const {
    const void* const at = memory;
    if (const CUresult error = driver().mem_retain_allocation_handle(&part.own, memory);
        error != CUDA_SUCCESS) {
      part.own = 0;
      fail(Status::InvalidArgument,
           "{} is not memory of virtual memory management (cuMemCreate and cuMemMap), as memory of "
           "cudaMalloc is not: "
           "{}; allocate it so, or with weft_device_malloc, or register it as a window",
           at, words(error));
    }
    CUdeviceptr start = 0;
    std::size_t bytes = 0;
    check(driver().mem_get_address_range(&start, &bytes, reinterpret_cast<CUdeviceptr>(memory)),
          "querying the mapping of the program's memory");
    if (start != reinterpret_cast<CUdeviceptr>(memory) || bytes != part.part.bytes) {
      fail(Status::InvalidArgument,
           "{} bytes at {} are not one whole allocation (cuMemCreate): the mapping there starts at "
           "{:#x} and has {} "
           "bytes; give all of it",
           part.part.bytes, at, start, bytes);
    }
    CUmemAllocationProp properties{};
    check(driver().mem_get_allocation_properties(&properties, part.own),
          "querying the properties of the program's memory");
    if (properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        properties.location.id != device_.index) {
      fail(Status::InvalidArgument, "{} is memory of {} {}, and this PE has taken GPU {}", at,
           properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE ? "GPU" : "the host, NUMA node",
           properties.location.id, device_.index);
    }
    offer_retained(part, properties.requestedHandleTypes, at);
  }

  // Prefers the kind of handle that the heap has, if the program's allocation supports it.
  void offer_retained(MappedPart& part, unsigned int kinds, const void* at) const {
    const bool has_descriptor = (kinds & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0;
    const bool has_fabric = (kinds & CU_MEM_HANDLE_TYPE_FABRIC) != 0;
    part.is_fabric = has_fabric && (is_fabric_ || !has_descriptor);
    if (!has_descriptor && !has_fabric && plan_.slot_count > 1) {
      fail(Status::InvalidArgument,
           "{} was allocated without a handle that the other PEs of the node can import; set "
           "requestedHandleTypes "
           "(CUmemAllocationProp) to CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR",
           at);
    }
    if (has_descriptor && !part.is_fabric) {
      offer_descriptor(part);
    }
  }

  static void close(MappedPart& part) {
    part.sender.reset();
    part.descriptor = FileDescriptor();
  }

  [[nodiscard]] DeviceSegmentOffer offer_of(const MappedPart& part) const {
    DeviceSegmentOffer offer{
        .descriptor = part.descriptor.get(), .pid = ::getpid(), .bytes = part.part.bytes};
    if (part.is_fabric) {
      offer.kind = HandleKind::Fabric;
      check(driver().mem_export_to_shareable_handle(offer.handle.data(), part.own,
                                                    CU_MEM_HANDLE_TYPE_FABRIC, 0),
            "exporting the device heap as a fabric handle");
    } else if (part.sender != nullptr) {
      write_name(offer, part.sender->name());
    }
    return offer;
  }

  void import(MappedPart& part,
              std::uint32_t slot,
              const DeviceSegmentOffer& offer,
              std::string_view whose) {
    CUmemGenericAllocationHandle handle{};
    DeviceSegmentOffer copy = offer;
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
      place(part, slot, handle);
    } catch (const Error& error) {
      fail(Status::InvalidArgument,
           "GPU {} cannot reach the memory of {}'s GPU: {}; where NVLink or PCIe peer-to-peer is "
           "missing or forbidden, set WEFT_NODE_SIZE=1 and the PEs use the rails",
           device_.index, whose, error.what());
    }
  }

  // Maps `handle` at `slot` for this GPU; takes ownership of it. Own memory is released with the
  // part.
  void place(MappedPart& part, std::uint32_t slot, CUmemGenericAllocationHandle handle) {
    const std::uint64_t bytes = part.part.bytes;
    const CUdeviceptr address = address_of(part, slot);
    if (const CUresult error = driver().mem_map(address, bytes, 0, handle, 0);
        error != CUDA_SUCCESS) {
      if (slot != plan_.my_slot) {
        driver().mem_release(handle);
      }
      check(error, "cuMemMap");
    }
    part.mapped[slot] = handle;
    const CUmemAccessDesc access{
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device_.index},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    check(driver().mem_set_access(address, bytes, &access, 1), "cuMemSetAccess");
  }

  [[nodiscard]] CUdeviceptr address_of(const MappedPart& part, std::uint32_t slot) const {
    return range_ + slot * stride_ + part.part.offset;
  }

  void unmap(MappedPart& part) noexcept {
    for (std::uint32_t slot = 0; slot < part.mapped.size(); ++slot) {
      if (part.mapped[slot] != 0) {
        driver().mem_unmap(address_of(part, slot), part.part.bytes);
      }
      if (part.mapped[slot] != 0 && slot != plan_.my_slot) {
        driver().mem_release(part.mapped[slot]);
      }
    }
    if (part.own != 0) {
      driver().mem_release(part.own);
    }
    part.mapped.clear();
    part.own = 0;
  }

  Device device_;
  SegmentPlan plan_;
  std::uint64_t reserved_ = 0;  // of a slot, for memory
  std::uint64_t stride_ = 0;
  std::size_t granularity_ = 0;
  bool is_fabric_ = false;
  CUdeviceptr range_ = 0;
  MappedPart first_;
  std::vector<MappedPart> later_;
};

}  // namespace

std::unique_ptr<Segments> make_segments(const Device& device, const SegmentPlan& plan) {
  if (plan.kind == MemoryKind::Ipc) {
    return make_ipc_segments(device, plan);
  }
  return std::make_unique<VirtualSegments>(device, plan);
}

}  // namespace weft::gpu
