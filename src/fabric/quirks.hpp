// Provider properties that cannot be queried. Only this table and variables.cpp name providers.
// Every row names its source; everything else is a capability of fi_getinfo(3). docs/PROVIDERS.md
// has the providers call by call. Constant data; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
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
  std::int32_t rank =
      0;  // "auto" uses the available provider of the highest rank; < 0: only by name
  bool kernel_sockets = false;  // connections are TCP sockets of this process: see socket_watch.hpp
  // Weft's own suites run on it; claims of all others are tested at start: trial.hpp
  bool is_tried = false;
  DeviceCopies device = DeviceCopies::Unknown;
  // It offers several fabrics over the same NICs, which do not understand each other: peers must
  // use the same one.
  bool has_fabrics = false;
  // Its own shared memory for peers of the node is kept out by hints for other nodes alone: it
  // costs the queues their wait objects, and what a PE writes to itself would not reach the NIC.
  bool for_other_nodes = false;
  // A fabric whose completion queues overrun although it claims FI_RM_ENABLED; "": none.
  std::string_view unguarded_fabric = {};
  // A fabric whose NICs refuse what comes from a peer that was not inserted; "": none.
  std::string_view known_senders_fabric = {};
  bool connects_at_insert = false;    // inserting an address waits for the peer
  std::size_t queue_entries_min = 0;  // of a completion queue, where less costs -FI_EAGAIN
  // Some versions take the structure of FI_MR_DMABUF for something else, and report success.
  bool misreads_dma_buf = false;
  // Its CPU copies the sources of small writes, with CUDA calls where they are on a GPU, unless
  // it is told not to: variables.hpp
  bool copies_small_writes = false;
  std::string_view notes = {};
  std::string_view source = {};
};

[[nodiscard]] std::span<const ProviderQuirk> provider_quirks();

// The row of a provider; a neutral one of rank 0 for an unknown name.
[[nodiscard]] const ProviderQuirk& quirk_of(std::string_view provider);

// See Rail::adds_peers_early. `fabric`: its name, of the NIC.
[[nodiscard]] bool inserts_early(std::string_view provider, std::string_view fabric);

// The provider that "auto" takes of those offered: the highest rank, and the first of equals. "" if
// all are only taken by name.
[[nodiscard]] std::string best_provider(std::span<const std::string> offered);

}  // namespace weft::fabric
