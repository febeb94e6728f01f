// What must be known of a job to open the rails of one of its PEs. Plain values, so that rails can
// be opened without a Runtime: Weft's own fills them from its Membership, a plugin inside another
// library from what that library tells it.
//
// One thread makes it and reads it, at init. It refers to the configuration and the bootstrap,
// which must outlive it; RailsTransport keeps neither.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/config.hpp"
#include "src/bootstrap/bootstrap.hpp"

namespace weft::transport::opening {

struct PeHost {
  std::string network;  // equal where loopback addresses mean the same: topology::network_of
  std::string name;     // for messages
};

// The PEs that share this machine's cores, even if they are split into several nodes.
struct MachineShare {
  std::uint32_t pe = 0;  // this PE's index among them
  std::uint32_t pe_count = 1;
  // That they may run on together. With fewer cores than PEs no thread spins for the rails' lock.
  std::uint32_t cores = 0;
};

// The sizes and values that may differ between PEs are those of this PE.
struct JobSite {
  const Config& config;
  bootstrap::Bootstrap& bootstrap;
  std::vector<PeHost> hosts;      // by PE
  std::vector<bool> locals;       // by PE: whether it shares this PE's node; this PE does
  std::uint32_t local_index = 0;  // of this PE among those, in PE order
  MachineShare machine;
  // The memory that peers may access, the same number of regions on every PE.
  std::vector<std::span<std::byte>> regions;
  // At the start of region 0: no PE of another node accesses them, and they are not registered.
  std::uint64_t unregistered_bytes = 0;
  // Of 8 bytes in region 0 that nobody reads, behind the unregistered ones: rails that have failed
  // are probed by writes to them.
  std::uint64_t probe_offset = 0;

  // Whether threads may poll without sleeping: not where PEs outnumber the cores.
  [[nodiscard]] bool may_spin() const {
    return config.spin_us > 0 && machine.pe_count <= machine.cores;
  }
};

}  // namespace weft::transport::opening
