// What only NVIDIA's management library knows: the driver's release, and NVLinks. Loaded at run time
// (libnvidia-ml.so.1 comes with the driver); without it nothing is known and nothing fails.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "src/gpu/inventory.hpp"

namespace weft::gpu {

class Nvml {
 public:
  Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml();

  // Fills in what CUDA cannot tell: release, counts and rates of links, which peers they lead to.
  void complete(Inventory& inventory) const;

 private:
  struct Functions;
  std::unique_ptr<Functions> functions_;  // null without the library
};

}  // namespace weft::gpu
