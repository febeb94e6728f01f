// The step "device": on every GPU a device heap as a PE would have it, and every GPU's mapping of
// every other's, through which bytes are copied and looked at.
//
// All GPUs are taken by this one process. Work on a GPU is done by a thread of its own, since
// CUDA's current GPU is the thread's.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/base/units.hpp"
#include "src/gpu/copier.hpp"
#include "src/gpu/inventory.hpp"
#include "src/gpu/segments.hpp"
#include "tools/info/doctor/step.hpp"

namespace weft::info {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kCopyBytes = std::uint64_t{64} << 20U;
constexpr std::uint32_t kCopies = 8;
constexpr std::uint64_t kCopyLimitNs = 10'000'000'000;

// On a thread whose GPU is `device`. Throws what `work` throws.
void on_gpu(const gpu::Device& device, const std::function<void()>& work) {
  std::exception_ptr failure;
  std::thread([&] {
    try {
      gpu::use_device(device);
      work();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure != nullptr) {
    std::rethrow_exception(failure);
  }
}

// Copies `times` over and waits. Returns the time in ns; throws if it fails.
std::uint64_t copy(gpu::Copier& copier,
                   void* dest,
                   const void* source,
                   std::size_t bytes,
                   std::uint32_t times = 1) {
  const std::uint64_t start = now_ns();
  std::uint64_t last = 0;
  for (std::uint32_t i = 0; i < times; ++i) {
    last = copier.start(gpu::CopyDirection::ToGpu, dest, source, bytes);
  }
  while (!copier.is_done(gpu::CopyDirection::ToGpu, last)) {
    if (const std::string* why = copier.failure(); why != nullptr) {
      fail("{}", *why);
    }
    if (now_ns() - start > kCopyLimitNs) {
      fail("copying {} did not end within 10 s", format_bytes(bytes));
    }
  }
  return now_ns() - start;
}

Bytes pattern(std::size_t bytes, std::size_t seed) {
  Bytes result(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    result[i] = static_cast<std::byte>((i * 31 + (i >> 8U) * 7 + seed * 101 + 1) & 0xffU);
  }
  return result;
}

struct TriedGpu {
  gpu::InventoryGpu gpu;
  std::unique_ptr<gpu::Segments> heap;  // null if it could not be made
};

class DeviceTrial {
 public:
  DeviceTrial(const Config& config, const Reporter& reporter, gpu::Inventory inventory)
      : config_(config), reporter_(reporter) {
    for (gpu::InventoryGpu& gpu : inventory.gpus) {
      gpus_.push_back({std::move(gpu), nullptr});
    }
  }

  void run() {
    for (TriedGpu& gpu : gpus_) {
      attempt(fmt::format("making the device heap of GPU {}", gpu.gpu.device.index),
              [&] { make_heap(gpu); });
    }
    for (TriedGpu& from : gpus_) {
      for (TriedGpu& to : gpus_) {
        if (&from != &to && from.heap != nullptr && to.heap != nullptr) {
          attempt(fmt::format("copying from GPU {} to the heap of GPU {}", from.gpu.device.index,
                              to.gpu.device.index),
                  [&] { try_pair(from, to); });
        }
      }
    }
    report_rates();
    reporter_.summary(fmt::format("{} GPU{}", gpus_.size(), gpus_.size() == 1 ? "" : "s"));
  }

 private:
  void attempt(const std::string& what, const std::function<void()>& work) {
    reporter_.trying(what);
    try {
      work();
    } catch (const Error& error) {
      reporter_.problem(fmt::format("{} failed: {}", what, error.what()),
                        "the sentence above names the setting; nvidia-smi shows who holds the GPU");
    }
  }

  [[nodiscard]] gpu::MemoryKind kind_for(const gpu::Device& device) const {
    const bool is_ipc = config_.device_memory == "ipc" ||
                        (config_.device_memory == "auto" && !device.has_posix_handles);
    return is_ipc ? gpu::MemoryKind::Ipc : gpu::MemoryKind::Virtual;
  }

  void make_heap(TriedGpu& tried) {
    const gpu::Device& device = tried.gpu.device;
    const gpu::SegmentPlan plan{.bytes = config_.device_heap_size,
                                .slot_count = static_cast<std::uint32_t>(gpus_.size()),
                                .my_slot = static_cast<std::uint32_t>(device.index),
                                .kind = kind_for(device)};
    std::uint64_t took_ns = 0;
    on_gpu(device, [&] {
      const gpu::Device ready = gpu::current_device();  // makes the context
      const std::uint64_t start = now_ns();
      tried.heap = gpu::make_segments(ready, plan);
      took_ns = now_ns() - start;
    });
    reporter_.ok(
        fmt::format("GPU {} ({}): device heap of {} in {:.1f} ms", device.index, device.name,
                    format_bytes(tried.heap->size()), static_cast<double>(took_ns) / 1e6),
        {{"gpu", device.index},
         {"heap_bytes", tried.heap->size()},
         {"heap_ms", static_cast<double>(took_ns) / 1e6}});
  }

  void try_pair(TriedGpu& from, TriedGpu& to) {
    const std::int32_t mine = from.gpu.device.index;
    const std::int32_t peer = to.gpu.device.index;
    if (!from.gpu.links[static_cast<std::size_t>(peer)].has_access) {
      reporter_.note(
          fmt::format("GPU {} cannot reach the memory of GPU {}: PEs on them use the proxy and the "
                      "rails",
                      mine, peer),
          "WEFT_NODE_SIZE=1, or take GPUs that NVLink or PCIe peer-to-peer joins");
      return;
    }
    if (kind_for(to.gpu.device) == gpu::MemoryKind::Ipc) {
      return;  // CUDA maps an IPC handle only in another process than the one that made it
    }
    const std::size_t bytes = std::min(kCopyBytes, to.heap->size());
    const Bytes sent = pattern(bytes, static_cast<std::size_t>(mine * 64 + peer));
    std::uint64_t took_ns = 0;
    on_gpu(from.gpu.device, [&] {
      std::byte* mapped = from.heap->map(static_cast<std::uint32_t>(peer), to.heap->offer(),
                                         fmt::format("GPU {}", peer));
      gpu::Copier copier(from.gpu.device);
      copy(copier, from.heap->base(), sent.data(), bytes);
      copy(copier, mapped, from.heap->base(), bytes);
      took_ns = copy(copier, mapped, from.heap->base(), bytes, kCopies);
    });
    Bytes received(bytes);
    on_gpu(to.gpu.device, [&] {
      gpu::Copier copier(to.gpu.device);
      copy(copier, received.data(), to.heap->base(), bytes);
    });
    if (received != sent) {
      fail("GPU {} does not hold the bytes that GPU {} wrote through its mapping", peer, mine);
    }
    const double rate = static_cast<double>(bytes) * kCopies / static_cast<double>(took_ns) * 1e9;
    rates_.push_back({{"from", mine}, {"to", peer}, {"bytes_per_s", rate}});
  }

  void report_rates() {
    if (rates_.empty()) {
      return;
    }
    double lowest = rates_[0]["bytes_per_s"];
    double highest = lowest;
    for (const auto& rate : rates_) {
      lowest = std::min(lowest, rate["bytes_per_s"].get<double>());
      highest = std::max(highest, rate["bytes_per_s"].get<double>());
    }
    reporter_.ok(
        fmt::format("{} pairs of GPUs: peers' heaps mapped, data checked, copies at {:.1f} "
                    "to {:.1f} GB/s",
                    rates_.size(), lowest / 1e9, highest / 1e9),
        {{"pairs", rates_}});
  }

  const Config& config_;
  const Reporter& reporter_;
  std::vector<TriedGpu> gpus_;
  nlohmann::ordered_json rates_ = nlohmann::ordered_json::array();
};

// Held as long as this process lives. Several PEs of a node would take each other's GPU memory, and
// one is enough.
bool is_first_here() {
  const int claim = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // A name that begins with a zero is no file, and is gone with its socket (unix(7)).
  const std::string name = fmt::format("weft-doctor-gpus-{}", ::getuid());
  std::ranges::copy(name, address.sun_path + 1);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return claim < 0 || ::bind(claim, reinterpret_cast<const sockaddr*>(&address), bytes) == 0 ||
         errno != EADDRINUSE;
}

}  // namespace

void try_device(const Config& config, const DoctorOptions& /*options*/, const Reporter& reporter) {
  reporter.trying("asking for GPUs");
  gpu::Inventory inventory = gpu::take_inventory();
  if (inventory.gpus.empty()) {
    reporter.skipped("no GPU: " + inventory.absence);
    reporter.summary("no GPU");
    return;
  }
  if (!is_first_here()) {
    reporter.skipped("another PE of this node, or another doctor, tries the GPUs");
    return;
  }
  DeviceTrial(config, reporter, std::move(inventory)).run();
}

}  // namespace weft::info
