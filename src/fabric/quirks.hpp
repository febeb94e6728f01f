// What is known of providers and cannot be asked of them: the one place with provider names. Every
// row says where the knowledge comes from; everything else is a capability of fi_getinfo(3).
// Constant data; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace weft::fabric {

// Who moves the bytes where a provider offers FI_HMEM.
enum class DeviceCopies : std::uint8_t {
  Unknown,  // only what it answers to FI_OPT_FI_HMEM_P2P counts
  Nic,      // the NIC itself, in RMA
  Host,     // the provider, with calls of CUDA: these may wait for the kernel that waits for them
};

struct ProviderQuirk {
  std::string_view name;  // provider name, as fi_getinfo reports it
  std::int32_t rank;      // "auto" takes the usable provider of the highest rank; < 0: only by name
  bool kernel_sockets;    // connections are TCP sockets of this process: see socket_watch.hpp
  bool is_tried;  // Weft's own suites run on it; what any other claims is tried at start: trial.hpp
  DeviceCopies device;
  std::string_view notes;
  std::string_view source;
};

[[nodiscard]] std::span<const ProviderQuirk> provider_quirks();

// The row of a provider; a neutral one of rank 0 for a name that is not in the table.
[[nodiscard]] const ProviderQuirk& quirk_of(std::string_view provider);

}  // namespace weft::fabric
