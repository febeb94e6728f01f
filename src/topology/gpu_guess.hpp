// Determines which GPU a PE will use, as far as that is known at init, when its NICs are chosen: a
// program opens its GPU (weft_device_init) later. It never guesses without evidence: a PE without a
// known GPU gets NICs by its cores.
//
// A pure function of the collected inputs; any thread.
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
  std::vector<PciAddress> visible;     // to this process, in CUDA's order
  std::optional<std::size_t> current;  // index in `visible`: the thread has a CUDA context on it
  std::size_t machine_gpu_count = 0;   // including those hidden from this process
  std::string_view local_rank;         // torchrun's LOCAL_RANK; empty if it is not set
  std::uint32_t machine_pe = 0;        // this PE's index on its machine
  std::uint32_t machine_pe_count = 1;
};

struct GpuGuess {
  std::optional<PciAddress> gpu;
  std::string_view reason;  // completes "GPU 0000:1b:00.0: " or "no GPU: "
};

// Tries, in this order: WEFT_GPU; the GPU on which the thread has a context; the only GPU that the
// launcher makes visible; LOCAL_RANK's; if the machine has as many PEs as GPUs, one each, in the
// order of weft_machine_pe(). Throws Error (InvalidArgument) if WEFT_GPU is not an address.
[[nodiscard]] GpuGuess guess_gpu(const GpuQuestion& question);

}  // namespace weft::topology
