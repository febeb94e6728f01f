// Information that only NVIDIA's management library (NVML) has: the driver's release, and NVLinks.
// Loaded at run time (libnvidia-ml.so.1 comes with the driver); without it the information is
// missing and nothing fails.
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

  // Adds what CUDA cannot report: the release, the number and rate of links, and the peers that
  // they connect.
  void complete(Inventory& inventory) const;

  // Whether the link between the GPUs at two PCI addresses carries atomics. True without the
  // library, or if it does not know them.
  [[nodiscard]] bool has_atomics(const std::string& from, const std::string& to) const;

 private:
  struct Functions;
  std::unique_ptr<Functions> functions_;  // null without the library
};

}  // namespace weft::gpu
