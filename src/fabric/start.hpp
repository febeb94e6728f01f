// Starts libfabric: the first fi_getinfo(3) of a process, when its providers read their variables.
//
// Control path; any thread; only the first call of a process does anything.
// Variables are set for that call alone, so programs that the process starts do not inherit them.
#pragma once

#include <cstddef>

namespace weft::fabric {

// Every message of Weft fits into so many bytes, so that tcp;ofi_rxm sends it eagerly: the smallest buffers that cost
// nothing.
inline constexpr std::size_t kMessageBytesMax = 8U << 10U;

// Returns at once if it has been started. After it has been opened.
//
// Before 1.18, `tcp;ofi_rxm` allocates and clears 1024 buffers of 16 KiB for each endpoint (prov/rxm/src/rxm_ep.c of
// 1.17), more than half of the CPU time of an init: bench/data/2026-11-25-init-64-pes-srun.txt. It is given smaller ones
// unless the user has set FI_OFI_RXM_BUFFER_SIZE, or the machine has RDMA devices: rxm serves them too, perhaps to other users
// of libfabric in this process.
void start_libfabric();

}  // namespace weft::fabric
