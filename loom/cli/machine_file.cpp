// The format: hwloc's hwloc2.dtd. Every object has a number of its own (gp_index); sets of cores
// and of memory are bitmaps of 32-bit words, the highest first.
//
// Threads: one.
#include "loom/cli/machine_file.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace loom {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;
constexpr std::uint64_t kMemoryOfPackage = 128 * kGiB;

struct Range {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

// {0, 33} is "0x00000001,0xffffffff".
std::string bitmap(Range range) {
  constexpr std::uint32_t kBits = 32;
  std::vector<std::uint32_t> words((range.first + range.count + kBits - 1) / kBits, 0);
  for (std::uint32_t i = range.first; i < range.first + range.count; ++i) {
    words[i / kBits] |= 1U << (i % kBits);
  }
  std::string text;
  for (std::size_t i = words.size(); i > 0; --i) {
    text += fmt::format("{}0x{:08x}", text.empty() ? "" : ",", words[i - 1]);
  }
  return text;
}

std::string sets(Range cores, Range memory) {
  return fmt::format(R"(cpuset="{0}" complete_cpuset="{0}" nodeset="{1}" complete_nodeset="{1}")",
                     bitmap(cores), bitmap(memory));
}

class Writer {
 public:
  void open(std::string_view type, const std::string& attributes) {
    text_ += fmt::format(R"(<object type="{}" {} gp_index="{}">)", type, attributes, ++objects_);
    text_ += '\n';
  }

  void info(std::string_view name, std::string_view value) {
    text_ += fmt::format(R"(<info name="{}" value="{}"/>)", name, value);
    text_ += '\n';
  }

  void close() { text_ += "</object>\n"; }

  void add(std::string_view type, const std::string& attributes) {
    open(type, attributes);
    close();
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::uint64_t objects_ = 0;
};

class Machine {
 public:
  Machine(const Topology& topology, const Persona& persona, const Settings& settings)
      : topology_(topology), persona_(persona), nic_count_(settings.nics_per_node) {}

  [[nodiscard]] std::string text() {
    const Range cores{0, topology_.packages * topology_.cores_of_package};
    const Range memory{0, topology_.packages};
    writer_.open("Machine",
                 fmt::format(R"(os_index="0" {} allowed_cpuset="{}" allowed_nodeset="{}")",
                             sets(cores, memory), bitmap(cores), bitmap(memory)));
    writer_.info("Backend", "Linux");
    writer_.info("DMIProductName", fmt::format("{}, emulated by Loom", topology_.product));
    for (std::uint32_t package = 0; package < topology_.packages; ++package) {
      add_package(package);
    }
    writer_.close();
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
           "<topology version=\"2.0\">\n" +
           writer_.text() + "</topology>\n";
  }

 private:
  void add_package(std::uint32_t package) {
    const Range cores{package * topology_.cores_of_package, topology_.cores_of_package};
    const Range memory{package, 1};
    writer_.open("Package", fmt::format(R"(os_index="{}" {})", package, sets(cores, memory)));
    writer_.add("NUMANode", fmt::format(R"(os_index="{}" {} local_memory="{}")", package,
                                        sets(cores, memory), kMemoryOfPackage));
    for (std::uint32_t core = cores.first; core < cores.first + cores.count; ++core) {
      const std::string own = fmt::format(R"(os_index="{}" {})", core, sets({core, 1}, memory));
      writer_.open("Core", own);
      writer_.add("PU", own);
      writer_.close();
    }
    for (std::uint32_t i = 0; i < topology_.switches_of_package; ++i) {
      add_switch(package * topology_.switches_of_package + i);
    }
    writer_.close();
  }

  void add_switch(std::size_t at_switch) {
    open_bridges(topology_.bridge_of_gpu(at_switch));
    writer_.add("PCIDev",
                device(topology_.gpu_of(at_switch), "0302", topology_.gpu, topology_.gpu_device));
    if (topology_.has_domains) {
      close_bridges();
      open_bridges(topology_.bridge_of_nic(at_switch));
    }
    const std::size_t first = at_switch * topology_.nics_of_switch;
    const std::size_t end = std::min<std::size_t>(first + topology_.nics_of_switch, nic_count_);
    for (std::size_t index = first; index < end; ++index) {
      add_nic(index);
    }
    close_bridges();
  }

  // A host bridge and below it the switch, or root port.
  void open_bridges(PciPlace bridge) {
    constexpr unsigned kBusesBelow = 10;
    const unsigned last = std::min(255U, bridge.bus + kBusesBelow);
    writer_.open("Bridge",
                 fmt::format(R"(bridge_type="0-1" depth="0" bridge_pci="{:04x}:[{:02x}-{:02x}]")",
                             bridge.domain, bridge.bus, last));
    writer_.open(
        "Bridge",
        fmt::format(R"(bridge_type="1-1" depth="1" bridge_pci="{:04x}:[{:02x}-{:02x}]" {})",
                    bridge.domain, bridge.bus + 1, last, device(bridge, "0604", "1000", "c030")));
  }

  void close_bridges() {
    writer_.close();
    writer_.close();
  }

  void add_nic(std::size_t index) {
    constexpr int kOpenFabrics = 3;
    writer_.open("PCIDev",
                 device(topology_.nic(index), "0200", fmt::format("{:04x}", persona_.vendor),
                        fmt::format("{:04x}", persona_.device)));
    writer_.open("OSDev", fmt::format(R"(name="{}" osdev_type="{}")", nic_name(persona_, index),
                                      kOpenFabrics));
    writer_.info("Port1State", "4");
    writer_.close();
    writer_.close();
  }

  static std::string device(PciPlace place,
                            std::string_view pci_class,
                            std::string_view vendor,
                            std::string_view device) {
    return fmt::format(
        R"(pci_busid="{0}" pci_type="{1} [{2}:{3}] [{2}:{3}] 00" pci_link_speed="0.000000")",
        place.text(), pci_class, vendor, device);
  }

  const Topology& topology_;
  const Persona& persona_;
  std::size_t nic_count_;
  Writer writer_;
};

}  // namespace

std::string describe_machine(const Topology& topology,
                             const Persona& persona,
                             const Settings& settings) {
  if (settings.nics_per_node > topology.nics_most()) {
    throw Error(fmt::format(
        "a node of the topology {} has {} NICs at most, not {}; lower --nics or --pes-per-node",
        topology.name, topology.nics_most(), settings.nics_per_node));
  }
  return Machine(topology, persona, settings).text();
}

}  // namespace loom
