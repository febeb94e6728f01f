// Starts libfabric: the first fi_getinfo(3) of a process, when its providers read most of their
// variables.
//
// Control path; any thread; only the first call of a process does anything.
// What Weft sets for it, and for how long: variables.hpp.
#pragma once

#include <cstddef>

#include "src/fabric/variables.hpp"

namespace weft::fabric {

// Every message of Weft fits into so many bytes, so that tcp;ofi_rxm sends it eagerly: the smallest
// buffers that cost nothing. Before 1.18, it allocates and clears 1024 buffers of 16 KiB for each
// endpoint (prov/rxm/src/rxm_ep.c of 1.17), more than half of the CPU time of an init:
// bench/data/2026-11-25-init-64-pes-srun.txt. With RDMA devices it keeps its own: rxm serves them
// too, perhaps to other users of libfabric in this process.
inline constexpr std::size_t kMessageBytesMax = 8U << 10U;

// What is known of the job by the one who starts libfabric.
struct StartNeeds {
  std::size_t pe_count = 1;
  bool uses_gpu = false;
};

// Returns at once if it has been started. After it has been opened.
void start_libfabric(const StartNeeds& needs = {});

// What the start has found. After it.
[[nodiscard]] const StartFacts& start_facts();

// Whether the provider leaves the sources of small writes to the NIC
// (ProviderQuirk::copies_small_writes). After the start.
[[nodiscard]] bool small_writes_are_left_to_nic();

}  // namespace weft::fabric
