// What the kernel and its modules offer to GPUs and NICs. Reads files; changes nothing. One thread.
#pragma once

#include <string>
#include <vector>

#include "tools/info/host_limits.hpp"

namespace weft::info {

struct KernelVersion {
  int major = 0;
  int minor = 0;

  friend constexpr auto operator<=>(const KernelVersion&, const KernelVersion&) = default;
};

// Of "6.18.44-fc-v445"; zeros for what has no such beginning. Pure.
[[nodiscard]] KernelVersion parse_kernel_version(const std::string& release);

// Network namespaces, taking over descriptors, dma-buf, peermem, gdrcopy, IOMMU. `root` is "" but
// in tests, and `release` what uname(2) says.
[[nodiscard]] std::vector<Permission> kernel_features(const std::string& root,
                                                      const std::string& release);

// Of the kernel that runs.
[[nodiscard]] std::string kernel_release();

}  // namespace weft::info
