// Which NICs a PE opens as its rails. A pure function of the machine, the usable NICs and the
// locations of all PEs of the node, so that all PEs reach the same result independently.
//
// Rules (docs/ARCHITECTURE.md has them with diagrams of real machines):
//   1. NICs that are down, not in WEFT_NICS, or of a lesser kind than others (a bridge to
//      containers, the loopback) are left out.
//   2. A PE claims its nearest NICs. NICs claimed by the same PEs are divided evenly among them, in
//      order; with fewer NICs than PEs, neighbors share one.
//   3. A NIC that no PE claimed goes to the PEs nearest to it, except to those with a NIC behind
//      their GPU's own switch: the GPU's link is their bottleneck, and a longer path adds no
//      bandwidth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/config.hpp"
#include "src/base/ids.hpp"
#include "src/base/pci_address.hpp"
#include "src/topology/machine.hpp"

namespace weft::topology {

// A NIC that the fabric can open.
struct NicCandidate {
  std::string name;     // "rdmap79s0", "eth0"
  std::string address;  // "10.0.0.1"; empty if the provider has no readable one
  std::optional<PciAddress> pci = std::nullopt;
  std::uint64_t rate_bits_per_s = 0;  // 0: unknown
  bool up = true;
  bool loopback = false;
};

struct NicLimits {
  std::uint32_t rail_count_max = kRailCountMax;  // 1 .. kRailCountMax
  bool nics_shared = false;                      // every PE opens all
  std::vector<std::string> include;              // names, addresses or networks; empty for all
};

struct NicQuestion {
  std::span<const NicCandidate> candidates;
  std::span<const PePlace> places;  // of all PEs of the node, by local index
  std::uint32_t local_index = 0;    // the PE whose NICs are requested
  NicLimits limits;
};

struct NicVerdict {
  bool chosen = false;
  Distance distance = Distance::Unknown;
  std::string
      reason;  // "same PCI switch as this PE's GPU", "down", "goes to PE 3 of this node", ...
};

struct NicChoice {
  std::vector<std::size_t> chosen;   // indices into candidates, in their order: rail 0, 1, ...
  std::vector<NicVerdict> verdicts;  // one per candidate
};

// `chosen` is empty if no NIC can be used; the verdicts give the reasons. Throws Error
// (InvalidArgument) if limits.include names a NIC that does not exist, or if rail_count_max is out
// of range.
[[nodiscard]] NicChoice choose_nics(const Machine& machine, const NicQuestion& question);

// WEFT_NICS, WEFT_NICS_SHARED and WEFT_RAIL_COUNT_MAX. Throws as choose_nics does.
[[nodiscard]] NicLimits nic_limits(const Config& config);

// Whether limits.include has the NIC.
[[nodiscard]] bool is_named(const NicCandidate& nic, const NicLimits& limits);

// One line per NIC: "eth0 (10.0.0.1): down". For messages that explain why there is no rail.
[[nodiscard]] std::string explain(std::span<const NicCandidate> candidates,
                                  const NicChoice& choice);

// The items [begin, end) of `item_count` for sharer `index` of `sharer_count`. With enough items:
// contiguous, disjoint blocks whose sizes differ by at most one, and every item is in one. With
// fewer items than sharers: one item each, item index * items / sharers. Empty if there are no
// items. Pure.
struct Share {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct Sharers {
  std::size_t index = 0;
  std::size_t count = 1;
};

[[nodiscard]] Share share_of(std::size_t item_count, Sharers sharers);

}  // namespace weft::topology
