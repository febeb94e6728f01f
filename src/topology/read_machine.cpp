// Reads a Machine through hwloc; the only file that includes hwloc's header. An hwloc topology
// exists only inside these functions: the results are plain data.
#include <algorithm>
#include <cerrno>
#include <memory>

#include <hwloc.h>

#include "src/base/error.hpp"
#include "src/topology/interfaces.hpp"
#include "src/topology/machine.hpp"

namespace weft::topology {
namespace {

struct TopologyDeleter {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};

using Topology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

struct BitmapDeleter {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};

using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

// The kernel's sysfs provides everything needed. GPU and display components would open drivers and
// X servers in every PE. "pci" (libpciaccess, if hwloc's plugins are installed) leaks memory: found
// by our address sanitizer build with hwloc 2.9.0.
void leave_out_slow_components(hwloc_topology_t topology) {
  for (const char* name : {"pci", "opencl", "gl", "cuda", "nvml", "rsmi", "levelzero"}) {
    // Fails for a component that is not installed, which has the same effect.
    static_cast<void>(
        hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, name));
  }
}

using PciAttributes = hwloc_obj_attr_u::hwloc_pcidev_attr_s;

// `xml` empty: reads the live machine.
Topology load(const std::string& xml, bool with_devices) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) {
    fail("hwloc_topology_init failed: {}", errno_words(errno));
  }
  Topology topology(raw);
  if (!xml.empty() && hwloc_topology_set_xml(raw, xml.c_str()) != 0) {
    fail(Status::InvalidArgument, "hwloc cannot read the machine in {}: {}", xml,
         errno_words(errno));
  }
  leave_out_slow_components(raw);
  if (with_devices) {
    // Bridges with one child are kept: they are root ports, and distances depend on them.
    hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    hwloc_topology_set_type_filter(raw, HWLOC_OBJ_BRIDGE, HWLOC_TYPE_FILTER_KEEP_ALL);
  }
  if (hwloc_topology_load(raw) != 0) {
    fail(Status::InvalidArgument, "hwloc cannot read {}: {}",
         xml.empty() ? "this machine" : "the machine in " + xml, errno_words(errno));
  }
  return topology;
}

// The NUMA node whose cores include all of `cpus`: the one with the fewest cores, then the lowest
// index. So a node of GPU or high-bandwidth memory next to the same cores is never chosen.
std::optional<std::uint32_t> node_around(hwloc_topology_t topology, hwloc_const_bitmap_t cpus) {
  hwloc_obj_t best = nullptr;
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
    const bool around = !hwloc_bitmap_iszero(cpus) && hwloc_bitmap_isincluded(cpus, node->cpuset);
    const auto order = [](hwloc_obj_t n) {
      return std::pair(hwloc_bitmap_weight(n->cpuset), n->os_index);
    };
    if (around && (best == nullptr || order(node) < order(best))) {
      best = node;
    }
  }
  return best == nullptr ? std::nullopt : std::optional<std::uint32_t>(best->os_index);
}

void read_numa_nodes(hwloc_topology_t topology, Machine& machine) {
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
    // Memory attached to the cores of another node (GPU memory, HBM) is not a location of its own.
    if (node_around(topology, node->cpuset) == node->os_index) {
      machine.numa_nodes.push_back(
          {node->os_index, static_cast<std::uint32_t>(hwloc_bitmap_weight(node->cpuset))});
    }
  }
  std::ranges::sort(machine.numa_nodes, {}, &NumaNode::index);
}

PciAddress address_of(const PciAttributes& pci) {
  return {pci.domain, pci.bus, pci.dev, pci.func};
}

PciDevice make_device(hwloc_topology_t topology, hwloc_obj_t object) {
  PciDevice device;
  device.address = address_of(object->attr->pcidev);
  for (hwloc_obj_t parent = object->parent; parent != nullptr; parent = parent->parent) {
    if (parent->type == HWLOC_OBJ_BRIDGE &&
        parent->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI) {
      device.bridges.insert(device.bridges.begin(), parent->gp_index);
    }
  }
  device.numa = node_around(topology, hwloc_get_non_io_ancestor_obj(topology, object)->cpuset);
  return device;
}

// 3D controllers, other display controllers and processing accelerators are GPUs. A VGA controller
// is one only if it is from NVIDIA, because servers have one on the BMC.
bool is_gpu(const PciAttributes& pci) {
  constexpr unsigned kVga = 0x0300;
  constexpr unsigned kThreeD = 0x0302;
  constexpr unsigned kOtherDisplay = 0x0380;
  constexpr unsigned kAccelerator = 0x1200;
  constexpr unsigned kNvidia = 0x10de;
  return pci.class_id == kThreeD || pci.class_id == kOtherDisplay || pci.class_id == kAccelerator ||
         (pci.class_id == kVga && pci.vendor_id == kNvidia);
}

std::string gpu_name(hwloc_obj_t object) {
  const char* model = hwloc_obj_get_info_by_name(object, "PCIDevice");
  return model != nullptr ? model
                          : fmt::format("{:04x}:{:04x}", object->attr->pcidev.vendor_id,
                                        object->attr->pcidev.device_id);
}

void read_pci_devices(hwloc_topology_t topology, Machine& machine) {
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_pcidev(topology, object)) != nullptr;) {
    machine.pci_devices.push_back(make_device(topology, object));
    if (is_gpu(object->attr->pcidev)) {
      machine.gpus.push_back({address_of(object->attr->pcidev), gpu_name(object)});
    }
  }
  std::ranges::sort(machine.gpus, {}, &Gpu::pci);
}

std::optional<PciAddress> pci_of(hwloc_obj_t os_device) {
  for (hwloc_obj_t parent = os_device->parent; parent != nullptr; parent = parent->parent) {
    if (parent->type == HWLOC_OBJ_PCI_DEVICE) {
      return address_of(parent->attr->pcidev);
    }
  }
  return std::nullopt;
}

void read_nics(hwloc_topology_t topology, Machine& machine, hwloc_obj_osdev_type_t type) {
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_osdev(topology, object)) != nullptr;) {
    if (object->attr->osdev.type != type) {
      continue;
    }
    Nic nic;
    nic.name = object->name;
    nic.kind = type == HWLOC_OBJ_OSDEV_OPENFABRICS ? NicKind::Rdma
               : nic.name == "lo"                  ? NicKind::Loopback
                                                   : NicKind::Net;
    nic.pci = pci_of(object);
    // hwloc reports the first port's state as the kernel's number: 4 is active.
    const char* state = hwloc_obj_get_info_by_name(object, "Port1State");
    nic.up = state == nullptr || std::string_view(state) == "4";
    machine.nics.push_back(std::move(nic));
  }
}

Machine read(hwloc_topology_t topology) {
  Machine machine;
  machine.core_count =
      static_cast<std::uint32_t>(std::max(hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE), 0));
  machine.pu_count =
      static_cast<std::uint32_t>(std::max(hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU), 0));
  read_numa_nodes(topology, machine);
  read_pci_devices(topology, machine);
  read_nics(topology, machine, HWLOC_OBJ_OSDEV_OPENFABRICS);
  read_nics(topology, machine, HWLOC_OBJ_OSDEV_NETWORK);
  return machine;
}

// Replaces hwloc's network interfaces (from sysfs) by those of the caller's namespace. Keeps
// hwloc's location if the driver does not report one.
void merge_interfaces(Machine& machine, std::vector<Nic> interfaces) {
  for (Nic& nic : interfaces) {
    const Nic* known = find_nic(machine, nic.name);
    if (!nic.pci && known != nullptr && known->kind == NicKind::Net && nic.kind == NicKind::Net) {
      nic.pci = known->pci;
    }
  }
  std::erase_if(machine.nics, [](const Nic& nic) { return nic.kind != NicKind::Rdma; });
  machine.nics.insert(machine.nics.end(), interfaces.begin(), interfaces.end());
}

}  // namespace

Machine read_machine() {
  const Topology topology = load("", true);
  Machine machine = read(topology.get());
  read_rdma_ports(machine.nics, "/sys/class/infiniband");
  merge_interfaces(machine, list_interfaces());
  return machine;
}

Machine read_machine_from_xml(const std::string& path) {
  return read(load(path, true).get());
}

std::optional<std::uint32_t> bound_numa_node() {
  const Topology topology = load("", false);
  const Bitmap cpus(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(topology.get(), cpus.get(), HWLOC_CPUBIND_THREAD) != 0) {
    return std::nullopt;
  }
  return node_around(topology.get(), cpus.get());
}

}  // namespace weft::topology
