// Provider properties that cannot be queried. This is the only place with provider names. Every row names its
// source; everything else is a capability of fi_getinfo(3).
// Constant data; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace weft::fabric {

// Which component moves the bytes if a provider offers FI_HMEM.
enum class DeviceCopies : std::uint8_t {
  Unknown,  // only its answer to FI_OPT_FI_HMEM_P2P counts
  Nic,      // the NIC itself, in RMA
  Host,     // the provider, with CUDA calls: they may deadlock with a waiting kernel
};

struct ProviderQuirk {
  std::string_view name;  // provider name, as fi_getinfo reports it
  std::int32_t rank;    // "auto" uses the available provider of the highest rank; < 0: only by name
  bool kernel_sockets;  // connections are TCP sockets of this process: see socket_watch.hpp
  bool
      is_tried;  // Weft's own suites run on it; claims of all others are tested at start: trial.hpp
  DeviceCopies device;
  std::string_view notes;
  std::string_view source;
};

[[nodiscard]] std::span<const ProviderQuirk> provider_quirks();

// The row of a provider; a neutral one of rank 0 for an unknown name.
[[nodiscard]] const ProviderQuirk& quirk_of(std::string_view provider);

}  // namespace weft::fabric
