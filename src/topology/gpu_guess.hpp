// Which GPU a PE will use, as far as that can be known at init, when its NICs are chosen: a program takes its GPU
// (weft_device_init) later. What is not known is not guessed: a PE without a GPU takes NICs by its cores.
//
// A pure function of what was asked before; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/pci_address.hpp"

namespace weft::topology {

struct GpuQuestion {
  std::string setting = "auto";        // WEFT_GPU
  std::vector<PciAddress> visible;     // to this process, as CUDA numbers them
  std::optional<std::size_t> current;  // of those: the thread has a CUDA context on it
  std::size_t machine_gpu_count = 0;   // also those that are hidden from this process
  std::string_view local_rank;         // torchrun's LOCAL_RANK; empty if it is not set
  std::uint32_t machine_pe = 0;        // this PE among those of its machine
  std::uint32_t machine_pe_count = 1;
};

struct GpuGuess {
  std::optional<PciAddress> gpu;
  std::string_view reason;  // completes "GPU 0000:1b:00.0: " or "no GPU: "
};

// In this order: WEFT_GPU; the GPU on which the thread has a context; the only one that the launcher lets it
// see; LOCAL_RANK's; with as many PEs on the machine as GPUs, each its own, as weft_machine_pe() numbers them.
// Throws Error (InvalidArgument) for a WEFT_GPU that is no address.
[[nodiscard]] GpuGuess guess_gpu(const GpuQuestion& question);

}  // namespace weft::topology
