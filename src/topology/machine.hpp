// The machine as a plain value: cores, NUMA nodes, GPUs, NICs and their positions in the PCI tree.
// hwloc reads it once at init, from the live machine or from an XML file (lstopo machine.xml).
// Afterwards it is plain data, and the functions that use it are pure.
//
// Owner: the code that read it. Immutable by convention, so any thread may read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/pci_address.hpp"

namespace weft::topology {

enum class NicKind : std::uint8_t {
  Rdma,      // an RDMA device: mlx5_0, rdmap79s0
  Net,       // a network interface: eth0, hsn0
  Bridge,    // a software bridge with a NIC among its ports (a hypervisor's br0)
  Internal,  // a software bridge (docker0, virbr0) to containers and VMs of this machine
  Loopback,  // lo
};

struct NumaNode {
  std::uint32_t index = 0;  // the kernel's index
  std::uint32_t pu_count = 0;
};

// A device in the PCI tree, with the data needed to compute distances.
struct PciDevice {
  PciAddress address;
  // The NUMA node whose cores are nearest; empty if the machine does not report it.
  std::optional<std::uint32_t> numa = std::nullopt;
  // PCI-to-PCI bridges from the root down to the device, by hwloc's index. Two devices that share
  // one are behind the same root port, hence behind the same switch.
  std::vector<std::uint64_t> bridges;
};

struct Gpu {
  PciAddress pci;
  std::string name;  // hwloc's model name, or "10de:2330"
};

struct Nic {
  std::string name;
  NicKind kind = NicKind::Net;
  std::optional<PciAddress> pci = std::nullopt;
  std::uint64_t rate_bits_per_s = 0;  // 0: unknown
  bool up = true;
  std::vector<std::string> addresses = {};  // of a network interface: "10.0.0.1", "fe80::1"
};

struct Machine {
  std::uint32_t core_count = 0;
  std::uint32_t pu_count = 0;
  std::vector<NumaNode> numa_nodes;  // nodes that have cores, by index
  std::vector<PciDevice> pci_devices;
  std::vector<Gpu> gpus;  // by PCI address, which is CUDA's order with CUDA_DEVICE_ORDER=PCI_BUS_ID
  std::vector<Nic> nics;  // RDMA devices first, then network interfaces, as the system lists them
};

// Ordered: smaller is nearer.
enum class Distance : std::uint8_t {
  SameSwitch,  // behind the same PCI switch: traffic does not pass through the CPU
  SameNuma,    // through the host bridges of one NUMA node
  OtherNuma,
  Unknown,  // a virtual NIC, or an unknown location: all such are equal
};

// The point from which a distance is measured: a GPU, or a NUMA node, or neither (all NICs are then
// equal).
struct PePlace {
  std::optional<PciAddress> gpu = std::nullopt;
  std::optional<std::uint32_t> numa = std::nullopt;

  friend bool operator==(const PePlace&, const PePlace&) = default;
};

// This machine, with the network interfaces of the caller's network namespace. Throws Error if
// hwloc cannot read it.
[[nodiscard]] Machine read_machine();

// A machine exported by hwloc. Throws Error naming the file.
[[nodiscard]] Machine read_machine_from_xml(const std::string& path);

// The NUMA node that the calling thread is bound to; empty if it may run on more than one.
[[nodiscard]] std::optional<std::uint32_t> bound_numa_node();

[[nodiscard]] const PciDevice* find_device(const Machine& machine, const PciAddress& address);
[[nodiscard]] const Nic* find_nic(const Machine& machine, std::string_view name);

// The distance from a PE's location to the device at `nic`; Unknown if there is no location, or no
// such device.
[[nodiscard]] Distance distance(const Machine& machine,
                                const PePlace& place,
                                const std::optional<PciAddress>& nic);

// "same PCI switch", "same NUMA node", "other NUMA node", "no known place"
[[nodiscard]] std::string_view to_string(Distance distance);
[[nodiscard]] std::string_view to_string(NicKind kind);

// The locations that a launcher which binds PE k of n evenly would give: GPU k * gpus / n if there
// are GPUs, otherwise no location. For weft-info and for PEs whose location is unknown. Pure.
[[nodiscard]] std::vector<PePlace> assumed_places(const Machine& machine,
                                                  std::uint32_t local_count);

}  // namespace weft::topology
