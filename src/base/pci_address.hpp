// The location of a device on the PCI bus: "0000:59:00.0". The one name that libfabric, hwloc, CUDA
// and the kernel share for a NIC or a GPU, so the layers use it to match devices.
// A plain value; pure functions, any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft {

struct PciAddress {
  std::uint32_t domain = 0;
  std::uint32_t bus = 0;
  std::uint32_t device = 0;
  std::uint32_t function = 0;

  friend constexpr auto operator<=>(const PciAddress&, const PciAddress&) = default;
};

// "0000:59:00.0", "59:00.0" (domain 0) or CUDA's "00000009:01:00.0", hexadecimal; empty for
// anything else.
[[nodiscard]] std::optional<PciAddress> parse_pci_address(std::string_view text);

// "0000:59:00.0"
[[nodiscard]] std::string to_string(const PciAddress& address);

}  // namespace weft
