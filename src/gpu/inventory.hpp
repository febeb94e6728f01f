// All GPUs that this process sees, and the connections between them: for weft-info. Creates no CUDA
// context and allocates no GPU memory, so it can run next to other programs.
//
// Threads: any, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/gpu/device.hpp"

namespace weft::gpu {

// The link from one GPU to another; all false for a GPU and itself.
struct PeerLink {
  bool has_access = false;   // its memory can be mapped
  bool has_atomics = false;  // also by native atomics
  bool is_nvlink = false;    // as NVML reports; otherwise PCIe
  // Links that end directly at that GPU; 0 if they end at a switch, which all of them share.
  std::uint32_t nvlink_count = 0;
};

struct InventoryGpu {
  Device device;
  std::int32_t compute_major = 0;  // compute capability 9.0
  std::int32_t compute_minor = 0;
  std::int32_t multiprocessor_count = 0;
  std::uint32_t nvlink_count = 0;        // links that are up
  std::uint64_t nvlink_bytes_per_s = 0;  // per link and direction; 0 if unknown
  std::vector<PeerLink> links;           // by index of the other GPU
};

struct Inventory {
  std::string absence;  // one sentence that explains why there is no GPU; empty if there is one
  std::int32_t runtime_version =
      0;  // CUDA version that libweft was built with; 13000 is 13.0, 0 is none
  std::int32_t driver_version = 0;  // the newest CUDA version that the driver supports
  std::string driver_release;       // "570.86.10"; empty if NVML is missing
  std::vector<InventoryGpu> gpus;
};

// Never throws: properties that cannot be queried stay 0 or empty.
[[nodiscard]] Inventory take_inventory();

// By peer, whether atomics of kernels of `device` on memory of the GPU at that PCI address are
// atomic with that GPU's own: over NVLink they are, over PCIe rarely. True if nobody can tell: CUDA
// does not show that GPU to this process, and there is no NVML. Never throws.
[[nodiscard]] std::vector<bool> have_atomics(const Device& device,
                                             std::span<const std::string> peers);

struct VisibleGpus {
  std::vector<std::string> pci;        // by CUDA index: "0000:1b:00.0"
  std::optional<std::size_t> current;  // the one on which the calling thread has a context
};

// Only the locations of this process's GPUs. Allocates no GPU memory. Never throws.
[[nodiscard]] VisibleGpus find_visible_gpus();

}  // namespace weft::gpu
