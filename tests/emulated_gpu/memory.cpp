// Memory of emulated GPUs. What the runtime allocates is memory of the process, so that sanitizers
// know its ends; but large blocks, and those of virtual memory management, are files in memory,
// which other processes map as they would a GPU's.
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/emulated_gpu/captures.hpp"
#include "tests/emulated_gpu/driver.hpp"
#include "tests/emulated_gpu/gpu.hpp"

namespace weft_emulated {
namespace {

// cudaMalloc's alignment.
constexpr std::size_t kAlignment = 512;
constexpr std::size_t kGranularity = std::size_t{2} << 20U;
// From this size on cudaMalloc's memory can be shared by IPC.
constexpr std::size_t kSharedMin = std::size_t{1} << 20U;
// What memory holds that nobody has written.
constexpr int kGarbage = 0xCB;

struct Memory {
  std::mutex mutex;
  std::map<std::uintptr_t, Range> ranges;  // by their begin
  std::uint64_t last_id = 0;
  std::atomic<std::size_t> taken{0};  // of this process's GPU
};

Memory& memory() {
  static Memory one;
  return one;
}

// Files of blocks that can be shared, by their begin.
std::map<void*, int>& files() {
  static std::map<void*, int> one;
  return one;
}

int make_file(std::size_t bytes) {
  const int file = ::memfd_create("weft-emulated-gpu", MFD_CLOEXEC);
  if (file >= 0 && ::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    ::close(file);
    return -1;
  }
  return file;
}

void* map_file(int file, std::size_t bytes) {
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return mapped == MAP_FAILED ? nullptr : mapped;
}

void* allocate_shared(std::size_t bytes) {
  const int file = make_file(bytes);
  void* mapped = file < 0 ? nullptr : map_file(file, bytes);
  if (mapped != nullptr) {
    const std::lock_guard lock(memory().mutex);
    files()[mapped] = file;
  }
  return mapped;
}

void give_back(void* address, std::size_t bytes) {
  std::unique_lock lock(memory().mutex);
  const auto found = files().find(address);
  if (found == files().end()) {
    std::free(address);
    return;
  }
  ::close(found->second);
  ::munmap(address, bytes);
  files().erase(found);
}

cudaError_t allocate(void** address, std::size_t bytes, MemoryKind kind) {
  enter();
  if (!may_be_unsafe()) {
    return cudaErrorStreamCaptureUnsupported;
  }
  if (address == nullptr) {
    return cudaErrorInvalidValue;
  }
  *address = nullptr;
  if (bytes == 0) {
    return cudaSuccess;
  }
  if (bytes > kMemoryOfGpu - memory().taken) {
    return cudaErrorMemoryAllocation;
  }
  *address =
      kind == MemoryKind::Device && bytes >= kSharedMin
          ? allocate_shared(bytes)
          : std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (*address == nullptr) {
    return cudaErrorMemoryAllocation;
  }
  std::memset(*address, kGarbage, bytes);
  memory().taken += kind == MemoryKind::Host ? 0 : bytes;
  add_range({reinterpret_cast<std::uintptr_t>(*address), bytes, kind, current_gpu, 0});
  return cudaSuccess;
}

cudaError_t release(void* address) {
  enter();
  if (!may_be_unsafe()) {
    return cudaErrorStreamCaptureUnsupported;
  }
  if (address == nullptr) {
    return is_lost() ? cudaErrorLaunchFailure : cudaSuccess;
  }
  const std::optional<Range> found = range_of(address);
  if (!found || found->begin != reinterpret_cast<std::uintptr_t>(address)) {
    return cudaErrorInvalidValue;
  }
  cudaDeviceSynchronize();
  memory().taken -= found->kind == MemoryKind::Host ? 0 : found->bytes;
  remove_range(address);
  give_back(address, found->bytes);
  return cudaSuccess;
}

}  // namespace

std::optional<Range> range_of(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard lock(memory().mutex);
  auto found = memory().ranges.upper_bound(at);
  if (found == memory().ranges.begin()) {
    return std::nullopt;
  }
  --found;
  const Range& range = found->second;
  return at < range.begin + range.bytes ? std::optional(range) : std::nullopt;
}

void add_range(Range range) {
  const std::lock_guard lock(memory().mutex);
  range.id = ++memory().last_id;
  memory().ranges[range.begin] = range;
}

void remove_range(const void* begin) {
  const std::lock_guard lock(memory().mutex);
  memory().ranges.erase(reinterpret_cast<std::uintptr_t>(begin));
}

// ---- Virtual memory management: a handle is one of an allocation, and knows its file.

namespace {

struct Allocation {
  int file = -1;
  std::size_t bytes = 0;
  CUmemAllocationProp properties{};
  bool is_own = false;  // of this process's GPU

  Allocation() = default;
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  ~Allocation() {
    ::close(file);
    memory().taken -= is_own ? bytes : 0;
  }
};

using Handle = std::shared_ptr<Allocation>;

// Mappings by their begin, and who owns what lies there.
struct Mappings {
  std::mutex mutex;
  std::map<CUdeviceptr, Handle> all;
};

Mappings& mappings() {
  static Mappings one;
  return one;
}

CUmemGenericAllocationHandle handle_for(Handle allocation) {
  return reinterpret_cast<CUmemGenericAllocationHandle>(new Handle(std::move(allocation)));
}

Handle& allocation_of(CUmemGenericAllocationHandle handle) {
  return *reinterpret_cast<Handle*>(handle);
}

void* at(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);
}

}  // namespace

namespace driver {

CUresult mem_address_reserve(CUdeviceptr* address,
                             std::size_t bytes,
                             std::size_t alignment,
                             CUdeviceptr /*hint*/,
                             unsigned long long /*flags*/) {
  const std::size_t unit = alignment == 0 ? kGranularity : alignment;
  void* range =
      ::mmap(nullptr, bytes + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const auto begin = reinterpret_cast<CUdeviceptr>(range);
  *address = (begin + unit - 1) / unit * unit;
  if (*address != begin) {
    ::munmap(range, *address - begin);
  }
  ::munmap(at(*address + bytes), begin + unit - *address);
  return CUDA_SUCCESS;
}

CUresult mem_address_free(CUdeviceptr address, std::size_t bytes) {
  return ::munmap(at(address), bytes) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult mem_create(CUmemGenericAllocationHandle* handle,
                    std::size_t bytes,
                    const CUmemAllocationProp* properties,
                    unsigned long long /*flags*/) {
  if (bytes == 0 || bytes % kGranularity != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (bytes > kMemoryOfGpu - memory().taken) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  auto made = std::make_shared<Allocation>();
  made->file = make_file(bytes);
  made->bytes = bytes;
  made->properties = *properties;
  if (made->file < 0) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  made->is_own = true;
  memory().taken += bytes;
  *handle = handle_for(std::move(made));
  return CUDA_SUCCESS;
}

CUresult mem_release(CUmemGenericAllocationHandle handle) {
  delete &allocation_of(handle);
  return CUDA_SUCCESS;
}

CUresult mem_map(CUdeviceptr address,
                 std::size_t bytes,
                 std::size_t offset,
                 CUmemGenericAllocationHandle handle,
                 unsigned long long /*flags*/) {
  const Handle& allocation = allocation_of(handle);
  if (offset != 0 || bytes > allocation->bytes || bytes % kGranularity != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (::mmap(at(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, allocation->file, 0) ==
      MAP_FAILED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  {
    const std::lock_guard lock(mappings().mutex);
    mappings().all[address] = allocation;
  }
  add_range({address, bytes, MemoryKind::Device, allocation->properties.location.id, 0});
  return CUDA_SUCCESS;
}

CUresult mem_unmap(CUdeviceptr address, std::size_t bytes) {
  if (::mmap(at(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
             -1, 0) == MAP_FAILED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  remove_range(at(address));
  const std::lock_guard lock(mappings().mutex);
  mappings().all.erase(address);
  return CUDA_SUCCESS;
}

CUresult mem_set_access(CUdeviceptr address,
                        std::size_t bytes,
                        const CUmemAccessDesc* /*access*/,
                        std::size_t /*count*/) {
  return ::mprotect(at(address), bytes, PROT_READ | PROT_WRITE) == 0 ? CUDA_SUCCESS
                                                                     : CUDA_ERROR_INVALID_VALUE;
}

CUresult mem_get_allocation_granularity(std::size_t* bytes,
                                        const CUmemAllocationProp* /*properties*/,
                                        CUmemAllocationGranularity_flags /*option*/) {
  *bytes = kGranularity;
  return CUDA_SUCCESS;
}

CUresult mem_export_to_shareable_handle(void* out,
                                        CUmemGenericAllocationHandle handle,
                                        CUmemAllocationHandleType type,
                                        unsigned long long /*flags*/) {
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  const int copy = ::dup(allocation_of(handle)->file);
  std::memcpy(out, &copy, sizeof copy);
  return copy >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult mem_import_from_shareable_handle(CUmemGenericAllocationHandle* handle,
                                          void* file,
                                          CUmemAllocationHandleType type) {
  struct stat status{};
  const int given = static_cast<int>(reinterpret_cast<std::intptr_t>(file));
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || ::fstat(given, &status) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto made = std::make_shared<Allocation>();
  made->file = ::dup(given);
  made->bytes = static_cast<std::size_t>(status.st_size);
  made->properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = current_gpu};
  *handle = handle_for(std::move(made));
  return CUDA_SUCCESS;
}

CUresult mem_get_address_range(CUdeviceptr* start, std::size_t* bytes, CUdeviceptr address) {
  const std::optional<Range> found = range_of(at(address));
  if (!found || found->kind == MemoryKind::Host) {
    return CUDA_ERROR_NOT_FOUND;
  }
  *start = found->begin;
  *bytes = found->bytes;
  return CUDA_SUCCESS;
}

CUresult mem_retain_allocation_handle(CUmemGenericAllocationHandle* handle, void* address) {
  const std::optional<Range> range = range_of(address);
  const std::lock_guard lock(mappings().mutex);
  const auto found = range ? mappings().all.find(range->begin) : mappings().all.end();
  if (found == mappings().all.end()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *handle = handle_for(found->second);
  return CUDA_SUCCESS;
}

CUresult mem_get_allocation_properties(CUmemAllocationProp* properties,
                                       CUmemGenericAllocationHandle handle) {
  *properties = allocation_of(handle)->properties;
  return CUDA_SUCCESS;
}

CUresult pointer_get_attribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  const std::optional<Range> found = range_of(at(address));
  if (!found) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (attribute == CU_POINTER_ATTRIBUTE_BUFFER_ID) {
    const unsigned long long id = found->id;
    std::memcpy(value, &id, sizeof id);
    return CUDA_SUCCESS;
  }
  if (attribute == CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE) {
    const int admits = admits_nics() ? 1 : 0;
    std::memcpy(value, &admits, sizeof admits);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace driver
}  // namespace weft_emulated

// ---- The runtime's calls

namespace {

// What a handle of IPC holds.
struct SharedBlock {
  pid_t process;
  int file;
  std::size_t bytes;
};

}  // namespace

using namespace weft_emulated;

extern "C" {

cudaError_t cudaMalloc(void** address, size_t bytes) {
  return allocate(address, bytes, MemoryKind::Device);
}

cudaError_t cudaFree(void* address) {
  return release(address);
}

cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned int /*flags*/) {
  return allocate(address, bytes, MemoryKind::Host);
}

cudaError_t cudaMallocHost(void** address, size_t bytes) {
  return allocate(address, bytes, MemoryKind::Host);
}

cudaError_t cudaFreeHost(void* address) {
  return release(address);
}

cudaError_t cudaMallocManaged(void** address, size_t bytes, unsigned int /*flags*/) {
  return allocate(address, bytes, MemoryKind::Managed);
}

cudaError_t cudaHostRegister(void* address, size_t bytes, unsigned int /*flags*/) {
  enter();
  add_range({reinterpret_cast<std::uintptr_t>(address), bytes, MemoryKind::Host, current_gpu, 0});
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* address) {
  remove_range(address);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  enter();
  *attributes = {};
  attributes->type = cudaMemoryTypeUnregistered;
  attributes->device = -2;
  attributes->hostPointer = const_cast<void*>(address);
  if (const std::optional<Range> found = range_of(address)) {
    attributes->type = found->kind == MemoryKind::Device ? cudaMemoryTypeDevice
                       : found->kind == MemoryKind::Host ? cudaMemoryTypeHost
                                                         : cudaMemoryTypeManaged;
    attributes->device = found->gpu;
    attributes->devicePointer = const_cast<void*>(address);
    attributes->hostPointer =
        found->kind == MemoryKind::Device ? nullptr : const_cast<void*>(address);
  }
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  enter();
  *total = kMemoryOfGpu;
  *free_bytes = *total - memory().taken;
  return cudaSuccess;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* address) {
  const std::optional<Range> found = range_of(address);
  const std::lock_guard lock(memory().mutex);
  const auto file = found ? files().find(reinterpret_cast<void*>(found->begin)) : files().end();
  if (file == files().end()) {
    return cudaErrorInvalidValue;
  }
  const SharedBlock block{::getpid(), file->second, found->bytes};
  std::memcpy(handle, &block, sizeof block);
  return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void** address,
                                 cudaIpcMemHandle_t handle,
                                 unsigned int /*flags*/) {
  SharedBlock block{};
  std::memcpy(&block, &handle, sizeof block);
  const std::string path =
      "/proc/" + std::to_string(block.process) + "/fd/" + std::to_string(block.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  *address = file < 0 ? nullptr : map_file(file, block.bytes);
  ::close(file);
  if (*address == nullptr) {
    return cudaErrorInvalidValue;
  }
  add_range({reinterpret_cast<std::uintptr_t>(*address), block.bytes, MemoryKind::Device,
             current_gpu, 0});
  return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void* address) {
  const std::optional<Range> found = range_of(address);
  if (!found) {
    return cudaErrorInvalidValue;
  }
  remove_range(address);
  ::munmap(address, found->bytes);
  return cudaSuccess;
}
}
