#!/usr/bin/env python3
"""Writes tests/fixtures/topology/*.xml: hwloc 2 descriptions of the shapes of real machines.

What is modelled: cores, NUMA nodes, the PCI tree, and vendor, device and class of GPUs and NICs.
Bus numbers of NICs follow the device names in the documents named below; bridges' own numbers are
made up. A unit test regenerates the files and compares.

    make_topology_fixtures.py [--out DIR]
"""
import argparse
import pathlib
from xml.sax.saxutils import quoteattr

ROOT = pathlib.Path(__file__).resolve().parent.parent

# class [vendor:device] of the devices, as lspci -nn prints them.
H100 = "0302 [10de:2330] [10de:16c1] a1"
GH200 = "0302 [10de:2342] [10de:16eb] a1"
EFA = "0200 [1d0f:efa2] [1d0f:efa2] 00"
ENA = "0200 [1d0f:ec20] [1d0f:ec20] 00"
CONNECTX7 = "0207 [15b3:1021] [15b3:0041] 00"
CASSINI = "0200 [17db:0501] [17db:0001] 00"
X710 = "0200 [8086:1572] [8086:0007] 02"
WIFI = "0280 [8086:a0f0] [8086:0074] 20"
IRIS_XE = "0300 [8086:9a49] [8086:9a49] 01"
ASPEED_VGA = "0300 [1a03:2000] [1a03:2000] 52"
PCIE_SWITCH = "0604 [1000:c030] [1000:a064] b0"
ROOT_PORT = "0604 [8086:352a] [8086:0000] 04"
GRACE_ROOT_PORT = "0604 [10de:22b8] [10de:0000] 00"

NETWORK, OPENFABRICS = "2", "3"


def cpuset(cpus):
    """{0, 33} -> '0x00000002,0x00000001': hwloc's bitmaps, 32 bits a word."""
    value = sum(1 << cpu for cpu in cpus)
    words = []
    while value or not words:
        words.insert(0, f"0x{value & 0xFFFFFFFF:08x}")
        value >>= 32
    return ",".join(words)


class Element:
    """One <object>, with hwloc's rule that gp_index is unique in a file."""

    def __init__(self, type_, infos=(), **attributes):
        self.type, self.infos, self.attributes, self.children = type_, infos, attributes, []

    def add(self, child):
        self.children.append(child)
        return child

    def write(self, lines, counter, indent=1):
        counter[0] += 1
        attributes = {"type": self.type, **self.attributes, "gp_index": counter[0]}
        text = " ".join(f"{name}={quoteattr(str(value))}" for name, value in attributes.items())
        inner = bool(self.infos or self.children)
        lines.append("  " * indent + f"<object {text}{'' if inner else '/'}>")
        for name, value in self.infos:
            lines.append("  " * (indent + 1) + f"<info name={quoteattr(name)} value={quoteattr(value)}/>")
        for child in self.children:
            child.write(lines, counter, indent + 1)
        if inner:
            lines.append("  " * indent + "</object>")


def sets(cpus, nodes):
    return {"cpuset": cpuset(cpus), "complete_cpuset": cpuset(cpus),
            "nodeset": cpuset(nodes), "complete_nodeset": cpuset(nodes)}


def host_bridge(parent, buses, domain=0):
    return parent.add(Element("Bridge", bridge_type="0-1", depth=0,
                              bridge_pci=f"{domain:04x}:[{buses[0]:02x}-{buses[1]:02x}]"))


def pci_bridge(parent, address, buses, kind=PCIE_SWITCH, depth=1):
    return parent.add(Element("Bridge", bridge_type="1-1", depth=depth,
                              bridge_pci=f"{address[:4]}:[{buses[0]:02x}-{buses[1]:02x}]",
                              pci_busid=address, pci_type=kind, pci_link_speed="0.000000"))


def device(parent, address, kind):
    return parent.add(Element("PCIDev", pci_busid=address, pci_type=kind, pci_link_speed="0.000000"))


def nic(parent, address, kind, name, type_, subtype="", state=""):
    """A NIC as a PCI device with its OS device in it; `state` as the kernel numbers a port's."""
    infos = [("Port1State", state)] if state else []
    extra = {"subtype": subtype} if subtype else {}
    device(parent, address, kind).add(Element("OSDev", infos, name=name, osdev_type=type_, **extra))


class Socket:
    """One package with one NUMA node; host bridges are added to `package`."""

    def __init__(self, index, cores, memory_gib):
        self.index, self.cores, self.memory_gib = index, cores, memory_gib
        self.cpus = [cpu for core in cores for cpu in core]
        self.package = Element("Package", os_index=index, **sets(self.cpus, [index]))
        self.package.add(Element("NUMANode", os_index=index, **sets(self.cpus, [index]),
                                 local_memory=memory_gib << 30))
        for number, core in enumerate(cores):
            element = self.package.add(Element("Core", os_index=number, **sets(core, [index])))
            for cpu in core:
                element.add(Element("PU", os_index=cpu, **sets([cpu], [index])))


def sockets(count, cores_each, threads, memory_gib):
    """Linux's numbering: all first threads, socket by socket, then all second threads."""
    total = count * cores_each
    return [Socket(s, [[s * cores_each + c + t * total for t in range(threads)]
                       for c in range(cores_each)], memory_gib) for s in range(count)]


def render(title, parts, header, memory_nodes=()):
    cpus = sorted(cpu for part in parts for cpu in part.cpus)
    nodes = [part.index for part in parts] + list(memory_nodes)
    machine = Element("Machine", [("Backend", "Linux"), ("DMIProductName", title)], os_index=0,
                      **sets(cpus, nodes), allowed_cpuset=cpuset(cpus), allowed_nodeset=cpuset(nodes))
    for part in parts:
        machine.add(part.package)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>',
             '<!DOCTYPE topology SYSTEM "hwloc2.dtd">',
             "<!-- Written by scripts/make_topology_fixtures.py; do not edit.", f"     {header} -->",
             '<topology version="2.0">']
    machine.write(lines, [0])
    return "\n".join(lines + ["</topology>", ""])


def p5_48xlarge():
    parts = sockets(2, 48, 2, 1024)
    first_buses = [79, 96, 113, 130, 147, 164, 181, 198]  # of the rdmapBUSs0 names
    for gpu, bus in enumerate(first_buses):
        bridge = host_bridge(parts[gpu // 4].package, (bus - 1, bus + 9))
        switch = pci_bridge(bridge, f"0000:{bus - 1:02x}:00.0", (bus, bus + 9))
        for k in range(4):
            nic(switch, f"0000:{bus + k:02x}:00.0", EFA, f"rdmap{bus + k}s0", OPENFABRICS, state="4")
        device(switch, f"0000:{bus + 4:02x}:00.0", H100)
    nic(host_bridge(parts[0].package, (0, 0x27)), "0000:27:00.0", ENA, "enp39s0", NETWORK)
    return render("p5.48xlarge", parts,
                  "AWS p5.48xlarge: 2 x 48 cores, 8 H100, 32 EFA NICs of 100 Gbit/s, 4 beside each GPU.\n"
                  "     Follows the public p5 topology file and the NIC names in aws-ofi-nccl, and the\n"
                  "     EC2 accelerated-computing instance specifications.")


def gh200_slingshot():
    parts = sockets(4, 72, 1, 120)
    for module, part in enumerate(parts):
        # The GPU's memory is a NUMA node without cores, next to the module's own.
        memory = 4 + module
        part.package.attributes.update(sets(part.cpus, [module, memory]))
        part.package.children.insert(1, Element("NUMANode", os_index=memory, subtype="GPUMemory",
                                                **sets(part.cpus, [memory]), local_memory=96 << 30))
        for domain, kind in ((module * 16 + 1, CASSINI), (module * 16 + 9, GH200)):
            bridge = host_bridge(part.package, (0, 1), domain)
            port = pci_bridge(bridge, f"{domain:04x}:00:00.0", (1, 1), GRACE_ROOT_PORT)
            if kind == CASSINI:
                nic(port, f"{domain:04x}:01:00.0", kind, f"hsn{module}", NETWORK, "Slingshot")
            else:
                device(port, f"{domain:04x}:01:00.0", kind)
    return render("HPE Cray EX254n", parts,
                  "HPE Cray EX254n: 4 Grace-Hopper modules of 72 cores, each with its own Cassini NIC of\n"
                  "     200 Gbit/s. Follows the node description of the Alps system in CSCS's documentation\n"
                  "     and NVIDIA's Grace tuning guide. The NIC is cxi0 to libfabric, hsn0 to the kernel's\n"
                  "     network stack; the NICs' PCI domains are assumed.", range(4, 8))


def dgx_h100():
    parts = sockets(2, 56, 2, 1024)
    compute = [(0x18, "mlx5_0"), (0x40, "mlx5_3"), (0x4f, "mlx5_4"), (0x5e, "mlx5_5"),
               (0x9a, "mlx5_6"), (0xc0, "mlx5_9"), (0xce, "mlx5_10"), (0xdc, "mlx5_11")]
    storage = {0: (0x29, ["mlx5_1", "mlx5_2"]), 4: (0xaa, ["mlx5_7", "mlx5_8"])}
    for gpu, (bus, name) in enumerate(compute):
        package = parts[gpu // 4].package
        switch = pci_bridge(host_bridge(package, (bus - 3, bus + 3)), f"0000:{bus - 3:02x}:01.0",
                            (bus - 2, bus + 3), ROOT_PORT)
        upstream = pci_bridge(switch, f"0000:{bus - 2:02x}:00.0", (bus - 1, bus + 3), depth=2)
        nic(upstream, f"0000:{bus:02x}:00.0", CONNECTX7, name, OPENFABRICS, state="4")
        device(upstream, f"0000:{bus + 3:02x}:00.0", H100)
        if gpu in storage:
            storage_bus, names = storage[gpu]
            port = pci_bridge(host_bridge(package, (storage_bus - 1, storage_bus)),
                              f"0000:{storage_bus - 1:02x}:01.0", (storage_bus, storage_bus), ROOT_PORT)
            for function, port_name in enumerate(names):
                nic(port, f"0000:{storage_bus:02x}:00.{function}", CONNECTX7, port_name, OPENFABRICS,
                    state="4")
    return render("DGXH100", parts,
                  "NVIDIA DGX H100: 2 x 56 cores, 8 H100, 8 ConnectX-7 of 400 Gbit/s, one beside each GPU,\n"
                  "     and two dual-port ConnectX-7 for storage. Follows the tables of network ports and\n"
                  "     network modules in the DGX H100/H200 user guide.")


def two_socket_ethernet():
    parts = sockets(2, 16, 2, 128)
    bridge = host_bridge(parts[0].package, (0x17, 0x18))
    port = pci_bridge(bridge, "0000:17:02.0", (0x18, 0x18), ROOT_PORT)
    nic(port, "0000:18:00.0", X710, "eno1", NETWORK)
    device(host_bridge(parts[0].package, (0, 3)), "0000:03:00.0", ASPEED_VGA)
    return render("Two-socket server", parts,
                  "A two-socket server with one Ethernet NIC, on the first socket, and the BMC's VGA.\n"
                  "     The usual shape of a rack server; device ids from the PCI ID repository.")


def laptop():
    parts = sockets(1, 4, 2, 16)
    bridge = host_bridge(parts[0].package, (0, 0))
    device(bridge, "0000:00:02.0", IRIS_XE)
    nic(bridge, "0000:00:14.3", WIFI, "wlp0s20f3", NETWORK)
    return render("Laptop", parts,
                  "A laptop: 4 cores, integrated graphics, Wi-Fi on the CPU's own PCI bus, no GPU for Weft.\n"
                  "     Intel Tiger Lake's public device ids.")


FIXTURES = {"p5_48xlarge": p5_48xlarge, "gh200_slingshot": gh200_slingshot, "dgx_h100": dgx_h100,
            "two_socket_ethernet": two_socket_ethernet, "laptop": laptop}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "tests/fixtures/topology")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for name, make in FIXTURES.items():
        (out / f"{name}.xml").write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
