// Where the NICs and GPUs of an emulated node sit in its PCI tree: the shape of a real machine, or
// none. The provider tells clients the addresses; the command line draws the tree for tools.
//
// Threads: constants. Addresses are those that clients read from fi_nic and tools from /sys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace loom {

struct PciPlace {
  std::uint16_t domain = 0;
  std::uint8_t bus = 0;  // device and function are 0

  // "0000:4f:00.0"
  [[nodiscard]] std::string text() const;
};

// A machine of one kind: packages of cores, each with some switches; behind a switch a GPU and its
// NICs.
struct Topology {
  std::string_view name;  // of `--topology`
  std::string_view product;
  std::uint32_t packages;
  std::uint32_t cores_of_package;
  std::uint32_t switches_of_package;
  std::uint32_t nics_of_switch;
  std::string_view gpu;  // vendor and device
  std::string_view gpu_device;
  bool
      has_domains;  // a PCI domain for each device; else one, with a range of buses for each switch

  [[nodiscard]] std::size_t switch_count() const {
    return std::size_t{packages} * switches_of_package;
  }

  [[nodiscard]] std::size_t nics_most() const { return switch_count() * nics_of_switch; }

  // The bridge above NIC `index`, and above the GPU of a switch; they are one if there are no
  // domains.
  [[nodiscard]] PciPlace bridge_of_nic(std::size_t index) const;
  [[nodiscard]] PciPlace bridge_of_gpu(std::size_t at_switch) const;
  [[nodiscard]] PciPlace nic(std::size_t index) const;
  [[nodiscard]] PciPlace gpu_of(std::size_t at_switch) const;
};

// In the order of Settings::topology, which is 0 for none and else one more than the place here.
[[nodiscard]] std::span<const Topology> topologies();

// Null for none.
[[nodiscard]] const Topology* topology_of(std::uint64_t setting);

// The setting for "none", "p5", ...; throws Error for other names.
[[nodiscard]] std::uint64_t find_topology(std::string_view name);

// "none, p5, gh200"
[[nodiscard]] std::string topology_names();

// The bus of NIC `index` where nothing else is said: as on an 8-GPU server, four behind each GPU's
// switch.
[[nodiscard]] std::uint8_t bus_of(std::size_t index);

// Of NIC `index` of a node.
[[nodiscard]] PciPlace nic_place(std::uint64_t topology, std::size_t index);

}  // namespace loom
