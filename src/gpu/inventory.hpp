// All GPUs that this process sees, and how they reach each other: for weft-info. Makes no CUDA context
// and takes no GPU memory, so that it can be asked beside programs that run.
//
// Threads: any, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/gpu/device.hpp"

namespace weft::gpu {

// From one GPU to another; all false for a GPU and itself.
struct PeerLink {
  bool has_access = false;   // its memory can be mapped
  bool has_atomics = false;  // by native atomics too
  bool is_nvlink = false;    // NVML's word; otherwise PCIe
  // Links that end at that very GPU; 0 where they end at a switch, which all of them share.
  std::uint32_t nvlink_count = 0;
};

struct InventoryGpu {
  Device device;
  std::int32_t compute_major = 0;  // compute capability 9.0
  std::int32_t compute_minor = 0;
  std::int32_t multiprocessor_count = 0;
  std::uint32_t nvlink_count = 0;        // that are up
  std::uint64_t nvlink_bytes_per_s = 0;  // of one link, each way; 0 if it is not known
  std::vector<PeerLink> links;           // by index of the other GPU
};

struct Inventory {
  std::string absence;  // one sentence that says why there is none; empty if there is one
  std::int32_t runtime_version = 0;  // of CUDA, as libweft was built; 13000 is 13.0, 0 is without
  std::int32_t driver_version = 0;   // the newest CUDA that the driver knows
  std::string driver_release;        // "570.86.10"; empty where NVML is missing
  std::vector<InventoryGpu> gpus;
};

// Never throws: what cannot be asked stays 0 or empty.
[[nodiscard]] Inventory take_inventory();

struct VisibleGpus {
  std::vector<std::string> pci;        // by CUDA's numbers: "0000:1b:00.0"
  std::optional<std::size_t> current;  // the one on which the calling thread has a context
};

// Only where the GPUs of this process are. Takes no GPU memory. Never throws.
[[nodiscard]] VisibleGpus find_visible_gpus();

}  // namespace weft::gpu
