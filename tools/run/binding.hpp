// The cores of each PE, through hwloc. Used by the agent: each machine has its own topology.
#pragma once

#include <cstdint>
#include <memory>

#include "tools/run/job.hpp"

struct hwloc_topology;

namespace weft::run {

class CoreBinder {
 public:
  // `pe_count` PEs share this machine. Throws Error if Core was asked for and the cores do not
  // suffice; Auto then binds nothing.
  CoreBinder(Binding binding, std::uint32_t pe_count);

  // Binds the calling process to the share of the `index`th PE of this machine: consecutive cores,
  // or a NUMA node. Between fork and exec. False if the kernel refused.
  [[nodiscard]] bool bind(std::uint32_t index) const;

 private:
  struct Destroy {
    void operator()(hwloc_topology* topology) const;
  };

  std::unique_ptr<hwloc_topology, Destroy> topology_;  // null: bind nothing
  bool by_numa_ = false;
  std::uint32_t pe_count_ = 0;
};

}  // namespace weft::run
