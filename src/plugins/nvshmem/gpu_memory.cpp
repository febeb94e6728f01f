#include "src/plugins/nvshmem/gpu_memory.hpp"

#include <cerrno>
#include <map>
#include <string>

#include <sys/uio.h>
#include <unistd.h>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/base/units.hpp"
#include "src/gpu/copied_words.hpp"
#include "src/gpu/gdrcopy.hpp"
#include "src/gpu/inventory.hpp"
#include "src/gpu/user_memory.hpp"

namespace weft::plugins::nvshmem {
namespace {

// A Weft without CUDA cannot ask what memory is. The CPU cannot read that of a GPU.
void require_readable(std::span<std::byte> memory) {
  std::byte first{};
  const iovec here{.iov_base = &first, .iov_len = 1};
  const iovec there{.iov_base = memory.data(), .iov_len = 1};
  if (!memory.empty() && ::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) < 0 &&
      errno == EFAULT) {
    fail(Status::InvalidArgument,
         "the CPU cannot read the {} at {}, and this Weft was built without CUDA, so it cannot ask "
         "whether they are a GPU's",
         format_bytes(memory.size()), static_cast<const void*>(memory.data()));
  }
}

class CudaMemories final : public GpuMemories {
 public:
  explicit CudaMemories(const CudaMemoryOptions& options) : options_(options) {}

  std::optional<GpuMemory> find(std::span<std::byte> memory) override {
    if (!gpu::is_built_in()) {
      require_readable(memory);
      return std::nullopt;
    }
    if (!gpu::find_visible_gpus().current) {  // asking about memory would start CUDA
      return std::nullopt;
    }
    const gpu::BorrowedThread borrowed;
    const gpu::UserMemoryInfo info = gpu::find_user_memory(memory);
    if (info.kind == gpu::UserMemoryKind::Host) {
      return std::nullopt;
    }
    require_whole(info, memory);
    const gpu::Device& device = device_of(info.gpu);
    if (const std::string refusal = gpu::nic_refusal(device, gpu::MemoryKind::Ipc);
        !refusal.empty()) {
      fail("{}", refusal);
    }
    GpuMemory found{.memory = {.memory = memory, .gpu = info.gpu},
                    .pages = gpu::dma_buf_of(device, memory),
                    .words = words_of(device, memory)};
    found.memory.dma_buf = found.pages.descriptor.get();
    found.memory.dma_buf_offset = found.pages.offset;
    found.memory.no_dma_buf = found.pages.why_not;
    return found;
  }

 private:
  static void require_whole(const gpu::UserMemoryInfo& info, std::span<const std::byte> memory) {
    if (info.kind == gpu::UserMemoryKind::Managed) {
      fail(Status::InvalidArgument,
           "{} at {} are managed memory, which moves between GPU and host, so no NIC may use it",
           format_bytes(memory.size()), static_cast<const void*>(memory.data()));
    }
    if (info.bytes < memory.size()) {
      fail(Status::InvalidArgument, "of {} at {} only the first {} are memory of GPU {}",
           format_bytes(memory.size()), static_cast<const void*>(memory.data()),
           format_bytes(info.bytes), info.gpu);
    }
    if (!info.admits_nics) {
      fail(Status::InvalidArgument,
           "the memory of GPU {} at {} was allocated without GPUDirect RDMA, so no NIC may use it",
           info.gpu, static_cast<const void*>(memory.data()));
    }
  }

  const gpu::Device& device_of(std::int32_t index) {
    const auto known = devices_.find(index);
    if (known != devices_.end()) {
      return known->second;
    }
    gpu::Device device = gpu::describe_device(index);
    device.nic_writes_read_by = options_.is_mapped ? gpu::Seers::AllGpus : gpu::Seers::Owner;
    return devices_.emplace(index, std::move(device)).first->second;
  }

  std::shared_ptr<gpu::WordMemory> words_of(const gpu::Device& device,
                                            std::span<std::byte> memory) {
    try {
      std::shared_ptr<gpu::WordMemory> mapped = gdrcopy().map(device, memory);
      if (!has_told_mapped_) {
        has_told_mapped_ = true;
        log::info("NVSHMEM's signals and atomics in memory of GPU {} go through gdrcopy",
                  device.index);
      }
      return mapped;
    } catch (const Error& error) {
      return copied(device, error.what());
    }
  }

  gpu::Gdrcopy& gdrcopy() {
    if (gdrcopy_ == nullptr && why_no_gdrcopy_.empty()) {
      try {
        if (!options_.may_map) {
          fail("NVSHMEM_DISABLE_GDRCOPY is set");
        }
        gdrcopy_ = gpu::Gdrcopy::open();
      } catch (const Error& error) {
        why_no_gdrcopy_ = error.what();
      }
    }
    if (gdrcopy_ == nullptr) {
      fail("{}", why_no_gdrcopy_);
    }
    return *gdrcopy_;
  }

  // One for each GPU, because each has a CUDA context.
  std::shared_ptr<gpu::WordMemory> copied(const gpu::Device& device, const std::string& why) {
    std::shared_ptr<gpu::WordMemory>& words = copied_[device.index];
    if (words == nullptr) {
      words = gpu::CopiedWords::create(device);
      log::warn(
          "NVSHMEM's signals and atomics in memory of GPU {} are copies between it and the host, "
          "which take some 10 us each: no gdrcopy ({}). Install gdrcopy for lower latency: its "
          "library (libgdrapi.so.2) and its kernel module (gdrdrv)",
          device.index, why);
    }
    return words;
  }

  CudaMemoryOptions options_;
  std::map<std::int32_t, gpu::Device> devices_;
  std::shared_ptr<gpu::Gdrcopy> gdrcopy_;
  std::string why_no_gdrcopy_;
  bool has_told_mapped_ = false;
  std::map<std::int32_t, std::shared_ptr<gpu::WordMemory>> copied_;
};

}  // namespace

std::unique_ptr<GpuMemories> make_cuda_memories(const CudaMemoryOptions& options) {
  return std::make_unique<CudaMemories>(options);
}

}  // namespace weft::plugins::nvshmem
