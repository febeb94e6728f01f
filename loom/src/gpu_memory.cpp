// Offers of this process's GPU memory, mappings of other processes' memory, and copies.
//
// Threads: any; one lock for the offers, one for the mappings.
#include "loom/src/gpu_memory.hpp"

#include <rdma/fi_errno.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loom/src/gpu_driver.hpp"
#include "loom/src/slots.hpp"

namespace loom {
namespace {

void say(const std::string& sentence) {
  fmt::print(stderr, "loom: {}\n", sentence);
}

// The GPU of a pointer; -1 for host memory.
int gpu_of(std::uint64_t address) {
  int index = -1;
  unsigned int type = 0;
  const GpuDriver& driver = *gpu_driver();
  const bool is_known =
      driver.pointer_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS;
  if (is_known && type == CU_MEMORYTYPE_DEVICE) {
    driver.pointer_attribute(&index, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
  }
  return index;
}

// ---- Offers

struct Offered {
  GpuOffer offer;
  std::uint32_t count = 0;  // keys of it
};

std::mutex offers_lock;

std::map<std::uint64_t, Offered>& offers() {  // by their first byte
  static auto* const kOffers = new std::map<std::uint64_t, Offered>;
  return *kOffers;
}

// Memory of cudaMalloc has an IPC handle; memory of virtual memory management a descriptor, if its
// maker asked for one.
int share(const GpuDriver& driver, GpuOffer& offer) {
  int has_handle = 0;
  driver.pointer_attribute(&has_handle, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                           offer.first);
  if (has_handle != 0) {
    CUipcMemHandle handle{};
    static_assert(sizeof(handle) == sizeof(offer.handle));
    if (const CUresult error = driver.ipc_handle(&handle, offer.first); error != CUDA_SUCCESS) {
      say(fmt::format("memory of a GPU at {:#x} has no IPC handle: {}", offer.first,
                      words_of(error)));
      return FI_ENOSYS;
    }
    std::memcpy(offer.handle.data(), &handle, sizeof(handle));
    offer.share = GpuShare::Handle;
    return 0;
  }
  CUmemGenericAllocationHandle allocation{};
  CUresult error = driver.retain_allocation(&allocation, reinterpret_cast<void*>(offer.first));
  if (error == CUDA_SUCCESS) {
    error = driver.export_allocation(&offer.descriptor, allocation,
                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    driver.release_allocation(allocation);
  }
  if (error != CUDA_SUCCESS) {
    say(
        fmt::format("memory of a GPU at {:#x} cannot be shared with other processes ({}); make it "
                    "with cudaMalloc, or "
                    "with cuMemCreate and CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR",
                    offer.first, words_of(error)));
    return FI_ENOSYS;
  }
  offer.share = GpuShare::Descriptor;
  return 0;
}

int make_offer(std::uint64_t first, std::uint64_t bytes, GpuOffer& offer) {
  static std::uint32_t made = 0;
  const GpuDriver& driver = *gpu_driver();
  const Gpu* gpu = open_gpu(gpu_of(first));
  if (gpu == nullptr) {
    say(fmt::format("{:#x} is no memory of a GPU that this process sees", first));
    return FI_EINVAL;
  }
  const CurrentGpu current(*gpu);
  CUdeviceptr base = 0;
  std::size_t size = 0;
  CUresult error = driver.address_range(&base, &size, first);
  CUuuid uuid{};
  if (error == CUDA_SUCCESS) {
    error = driver.device_uuid(&uuid, gpu->index());
  }
  if (error != CUDA_SUCCESS) {
    say(fmt::format("memory of a GPU at {:#x} cannot be looked up: {}", first, words_of(error)));
    return FI_EINVAL;
  }
  if (bytes > size || first - base > size - bytes) {
    say(fmt::format(
        "{} bytes at {:#x} are of several allocations of a GPU; register each by itself", bytes,
        first));
    return FI_EINVAL;
  }
  offer = {
      .id = static_cast<std::uint64_t>(::getpid()) << 32U | ++made, .first = base, .bytes = size};
  static_assert(sizeof(uuid) == sizeof(offer.gpu));
  std::memcpy(offer.gpu.data(), &uuid, sizeof(uuid));
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // so that others may take the descriptor
  return share(driver, offer);
}

// ---- Mappings

// An allocation of another process, mapped here; unmapped with the last of its keys.
class Mapping {
 public:
  Mapping(const Gpu& gpu, const GpuOffer& offer) : gpu_(gpu), offer_(offer) {}

  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  ~Mapping() {
    if (here_ == 0) {
      return;
    }
    const GpuDriver& driver = *gpu_driver();
    const CurrentGpu current(gpu_);
    driver.wait_for_stream(gpu_.stream());  // copies may be under way
    if (offer_.share == GpuShare::Handle) {
      driver.ipc_close(here_);
      return;
    }
    driver.unmap(here_, offer_.bytes);
    driver.unreserve(here_, offer_.bytes);
  }

  CUresult map(pid_t owner) {
    const CurrentGpu current(gpu_);
    if (offer_.share == GpuShare::Descriptor) {
      return map_descriptor(owner);
    }
    CUipcMemHandle handle{};
    std::memcpy(&handle, offer_.handle.data(), sizeof(handle));
    return gpu_driver()->ipc_open(&here_, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  }

  [[nodiscard]] GpuPlace at(std::uint64_t address) const {
    return {.address = here_ + (address - offer_.first), .gpu = gpu_.index()};
  }

 private:
  CUresult map_descriptor(pid_t owner) {
    const GpuDriver& driver = *gpu_driver();
    const auto process = static_cast<int>(::syscall(SYS_pidfd_open, owner, 0));
    const auto file = static_cast<int>(::syscall(SYS_pidfd_getfd, process, offer_.descriptor, 0));
    ::close(process);
    if (file < 0) {
      return CUDA_ERROR_NOT_PERMITTED;
    }
    CUmemGenericAllocationHandle allocation{};
    CUresult error = driver.import_allocation(
        &allocation, reinterpret_cast<void*>(static_cast<std::intptr_t>(file)),
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    ::close(file);
    if (error != CUDA_SUCCESS) {
      return error;
    }
    CUdeviceptr range = 0;
    error = driver.reserve(&range, offer_.bytes, 0, 0, 0);
    if (error == CUDA_SUCCESS) {
      error = place(range, allocation);
    }
    driver.release_allocation(allocation);  // the mapping keeps it
    return error;
  }

  CUresult place(CUdeviceptr range, CUmemGenericAllocationHandle allocation) {
    const GpuDriver& driver = *gpu_driver();
    CUresult error = driver.map(range, offer_.bytes, 0, allocation, 0);
    if (error == CUDA_SUCCESS) {
      const CUmemAccessDesc access{
          .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu_.index()},
          .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
      error = driver.set_access(range, offer_.bytes, &access, 1);
      if (error != CUDA_SUCCESS) {
        driver.unmap(range, offer_.bytes);
      }
    }
    if (error != CUDA_SUCCESS) {
      driver.unreserve(range, offer_.bytes);
      return error;
    }
    here_ = range;
    return CUDA_SUCCESS;
  }

  const Gpu& gpu_;
  GpuOffer offer_;
  CUdeviceptr here_ = 0;
};

struct KnownKey {
  const KeySlot* slot = nullptr;
  std::uint32_t generation = 0;
  std::shared_ptr<Mapping> mapping;
};

std::mutex mappings_lock;

std::map<std::uint64_t, KnownKey>& known_keys() {
  static auto* const kKeys = new std::map<std::uint64_t, KnownKey>;
  return *kKeys;
}

std::map<std::uint64_t, std::weak_ptr<Mapping>>& mappings() {  // by the offer's id
  static auto* const kMappings = new std::map<std::uint64_t, std::weak_ptr<Mapping>>;
  return *kMappings;
}

// The GPU whose engines copy to and from memory of others: that of memory which this process has
// registered, else the memory's own.
int copying_gpu(const GpuOffer& offer) {
  {
    const std::lock_guard guard(offers_lock);
    if (!offers().empty()) {
      return gpu_of(offers().begin()->first);
    }
  }
  return find_gpu(offer.gpu.data());
}

std::shared_ptr<Mapping> map_offer(const GpuOffer& offer, pid_t owner) {
  const std::shared_ptr<Mapping> known = mappings()[offer.id].lock();
  if (known != nullptr) {
    return known;
  }
  const Gpu* gpu = open_gpu(copying_gpu(offer));
  if (gpu == nullptr) {
    say(fmt::format("process {} sees no GPU that could write to the memory of process {}",
                    ::getpid(), owner));
    return nullptr;
  }
  auto mapping = std::make_shared<Mapping>(*gpu, offer);
  if (const CUresult error = mapping->map(owner); error != CUDA_SUCCESS) {
    say(
        fmt::format("memory of process {}'s GPU cannot be mapped: {}; ptrace between the processes "
                    "must be allowed "
                    "(kernel.yama.ptrace_scope=0, or --cap-add=SYS_PTRACE)",
                    owner, words_of(error)));
    return nullptr;
  }
  mappings()[offer.id] = mapping;
  return mapping;
}

// Keys that have been closed since.
void forget_closed_keys() {
  std::erase_if(known_keys(), [](const auto& entry) {
    return !is_open(*entry.second.slot, entry.second.generation);
  });
  std::erase_if(mappings(), [](const auto& entry) { return entry.second.expired(); });
}

}  // namespace

int offer_gpu_memory(std::uint64_t first, std::uint64_t bytes, GpuOffer& offer) {
  if (gpu_driver() == nullptr) {
    say("memory of GPUs cannot be registered: " + why_no_gpu());
    return FI_ENOSYS;
  }
  const std::lock_guard guard(offers_lock);
  for (auto& [base, offered] : offers()) {
    if (first >= base && first - base < offered.offer.bytes &&
        bytes <= offered.offer.bytes - (first - base)) {
      ++offered.count;
      offer = offered.offer;
      return 0;
    }
  }
  if (const int error = make_offer(first, bytes, offer); error != 0) {
    return error;
  }
  offers()[offer.first] = {.offer = offer, .count = 1};
  return 0;
}

void withdraw_gpu_memory(const GpuOffer& offer) {
  const std::lock_guard guard(offers_lock);
  const auto found = offers().find(offer.first);
  if (found == offers().end() || --found->second.count > 0) {
    return;
  }
  if (offer.descriptor >= 0) {
    ::close(offer.descriptor);
  }
  offers().erase(found);
}

GpuPlace gpu_place(std::uint64_t address) {
  return {.address = address, .gpu = gpu_driver() == nullptr ? -1 : gpu_of(address)};
}

std::optional<GpuPlace> gpu_place(const KeySlot& slot, std::uint64_t key, std::uint64_t address) {
  const auto owner = static_cast<pid_t>(loom::look(slot.pid));
  if (owner == ::getpid()) {
    return gpu_place(address);
  }
  const std::lock_guard guard(mappings_lock);
  const std::uint32_t generation =
      slot.generation.load(std::memory_order_relaxed);  // relaxed: find_key() has looked
  const auto known = known_keys().find(key);
  if (known != known_keys().end() && known->second.generation == generation) {
    return known->second.mapping->at(address);
  }
  forget_closed_keys();
  const GpuOffer offer = slot.gpu;
  if (gpu_driver() == nullptr) {
    return std::nullopt;
  }
  std::shared_ptr<Mapping> mapping = map_offer(offer, owner);
  if (mapping == nullptr) {
    return std::nullopt;
  }
  const GpuPlace here = mapping->at(address);
  known_keys()[key] = {.slot = &slot, .generation = generation, .mapping = std::move(mapping)};
  return here;
}

// ---- Copies

int start_copies(std::int32_t index, std::span<const GpuPart> parts, GpuTicket& ticket) {
  Gpu* gpu = open_gpu(index);
  if (gpu == nullptr) {
    return FI_EFAULT;
  }
  const GpuDriver& driver = *gpu_driver();
  const CurrentGpu current(*gpu);
  CUevent event = gpu->take_event();
  CUresult error = event == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  for (const GpuPart& part : parts) {
    if (error == CUDA_SUCCESS) {
      error = driver.copy(part.to, part.from, part.bytes, gpu->stream());
    }
  }
  if (error == CUDA_SUCCESS) {
    error = driver.record_event(event, gpu->stream());
  }
  if (error != CUDA_SUCCESS) {
    say(fmt::format("GPU {} does not copy: {}", gpu->index(), words_of(error)));
    return FI_EFAULT;
  }
  ticket = {.event = event, .gpu = gpu->index()};
  return 0;
}

std::optional<int> result_of(GpuTicket& ticket) {
  Gpu& gpu = *open_gpu(ticket.gpu);
  const CurrentGpu current(gpu);
  auto* event = static_cast<CUevent>(ticket.event);
  const CUresult state = gpu_driver()->query_event(event);
  if (state == CUDA_ERROR_NOT_READY) {
    return std::nullopt;
  }
  gpu.give_event(event);
  ticket = {};
  if (state != CUDA_SUCCESS) {
    say(fmt::format("GPU {} has not copied: {}", gpu.index(), words_of(state)));
  }
  return state == CUDA_SUCCESS ? 0 : FI_EIO;
}

int copy_by_cuda(std::uint64_t from, std::span<std::byte> to) {
  const Gpu* gpu = open_gpu(gpu_of(from));
  if (gpu == nullptr) {
    return FI_EFAULT;
  }
  const CurrentGpu current(*gpu);
  const GpuDriver& driver = *gpu_driver();
  const auto there = reinterpret_cast<CUdeviceptr>(to.data());
  CUresult error = driver.copy(there, from, to.size(), CU_STREAM_LEGACY);
  if (error == CUDA_SUCCESS) {
    error = driver.wait_for_stream(CU_STREAM_LEGACY);
  }
  if (error != CUDA_SUCCESS) {
    say(fmt::format("GPU {} does not copy: {}", gpu->index(), words_of(error)));
  }
  return error == CUDA_SUCCESS ? 0 : FI_EFAULT;
}

int copy_and_wait(std::int32_t gpu, const GpuPart& part) {
  GpuTicket ticket;
  if (const int error = start_copies(gpu, {&part, 1}, ticket); error != 0) {
    return error;
  }
  std::optional<int> result;
  while (!(result = result_of(ticket))) {
  }
  return *result;
}

}  // namespace loom
