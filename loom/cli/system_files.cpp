// Layout as Linux has it: /sys/class/infiniband/NIC/ports/1/hw_counters/NAME, and NIC/device as a
// link to a PCI device, whose path tools take for its place in the machine.
//
// Threads: one.
#include "loom/cli/system_files.hpp"

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "loom/src/topology.hpp"

namespace loom {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPciClass = "loom_pci";

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << '\n';
  if (!file.flush()) {
    throw Error(fmt::format("{} cannot be written: {}; set LOOM_DIR to a folder with room", path,
                            error_words(errno)));
  }
}

// The machine's own entries: links keep their relative targets, as the tree is mounted where they
// were.
void copy_classes(const std::string& to) {
  for (const auto& group : fs::directory_iterator("/sys/class")) {
    const fs::path folder = fs::path(to) / group.path().filename();
    fs::create_directory(folder);
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(group.path(), ignored)) {
      if (entry.is_symlink(ignored)) {
        fs::create_symlink(fs::read_symlink(entry.path()), folder / entry.path().filename(),
                           ignored);
      }
    }
  }
}

// Locally administered; clients of EFA look for the NIC's number in the last byte.
std::string node_guid(std::uint32_t node, std::size_t index) {
  return fmt::format("0200:{:04x}:{:04x}:{:04x}", node >> 16U, node & 0xffffU, index);
}

// As the kernel names InfiniBand's rates.
std::string rate_text(std::uint64_t bits_per_s) {
  return fmt::format("{:.6g} Gb/sec (4X EDR)", static_cast<double>(bits_per_s) / 1e9);
}

}  // namespace

std::string SystemFiles::class_folder(const std::string& folder, std::uint32_t node) {
  return fmt::format("{}/node{}/class", folder, node);
}

SystemFiles::SystemFiles(std::string folder, const Persona& persona, const Segment& segment)
    : folder_(std::move(folder)), persona_(persona), segment_(segment) {
  try {
    fs::remove_all(folder_);
    for (std::uint32_t node = 0; node < segment.settings.node_count; ++node) {
      make_node(node);
    }
  } catch (const fs::filesystem_error& error) {
    throw Error(
        fmt::format("the files of the nodes cannot be made: {}; set LOOM_DIR to a folder with room",
                    error.what()));
  }
}

SystemFiles::~SystemFiles() {
  for (const CounterFile& counter : counters_) {
    ::close(counter.descriptor);
  }
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void SystemFiles::make_node(std::uint32_t node) {
  const std::string classes = class_folder(folder_, node);
  fs::create_directories(classes);
  copy_classes(classes);
  for (const std::string_view name : {persona_.class_folder, kPciClass}) {
    fs::remove_all(fs::path(classes) / name);
    fs::create_directory(fs::path(classes) / name);
  }
  for (std::size_t index = 0; index < segment_.settings.nics_per_node; ++index) {
    make_nic(classes, node, index);
  }
}

void SystemFiles::make_nic(const std::string& classes, std::uint32_t node, std::size_t index) {
  const std::string name = nic_name(persona_, index);
  const std::string pci = fmt::format("{}/{}", kPciClass, pci_path(index));
  const std::string device = fmt::format("{}/{}", classes, pci);
  const std::string port = fmt::format("{}/{}/{}/ports/1", classes, persona_.class_folder, name);
  fs::create_directories(device);
  fs::create_directories(port + "/hw_counters");
  fs::create_symlink("/sys/class/" + pci,
                     fmt::format("{}/{}/{}/device", classes, persona_.class_folder, name));
  write_file(device + "/numa_node", "-1");
  write_file(device + "/vendor", fmt::format("0x{:04x}", persona_.vendor));
  write_file(device + "/device", fmt::format("0x{:04x}", persona_.device));
  write_file(device + "/class", "0x020000");
  write_file(port + "/state", "4: ACTIVE");
  write_file(port + "/phys_state", "5: LinkUp");
  write_file(port + "/rate", rate_text(segment_.settings.rate_bits_per_s));
  write_file(port + "/link_layer", "Unspecified");
  write_file(fmt::format("{}/{}/{}/fw_ver", classes, persona_.class_folder, name),
             "emulated by Loom");
  write_file(fmt::format("{}/{}/{}/node_guid", classes, persona_.class_folder, name),
             node_guid(node, index));
  const Nic& nic = segment_.nics[node * segment_.settings.nics_per_node + index];
  for (const NicCounter& counter : nic_counters()) {
    const std::string path = fmt::format("{}/hw_counters/{}", port, counter.name);
    const int descriptor = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    if (descriptor < 0) {
      throw Error(fmt::format("{} cannot be made: {}; raise the limit of open files (ulimit -n)",
                              path, error_words(errno)));
    }
    counters_.push_back({descriptor, &(nic.counters.*counter.field), ~std::uint64_t{0}});
  }
}

// Below the host bridge and, where the node has a topology, its switch: tools compare these paths.
std::string SystemFiles::pci_path(std::size_t index) const {
  const Topology* topology = topology_of(segment_.settings.topology);
  const std::string nic = nic_place(segment_.settings.topology, index).text();
  if (topology == nullptr) {
    return "pci0000:00/" + nic;
  }
  const PciPlace bridge = topology->bridge_of_nic(index);
  return fmt::format("pci{:04x}:{:02x}/{}/{}", bridge.domain, bridge.bus, bridge.text(), nic);
}

void SystemFiles::update() {
  for (CounterFile& counter : counters_) {
    const std::uint64_t value = look(*counter.value);
    if (value == counter.written) {
      continue;
    }
    counter.written = value;
    // Always as wide, so that a reader never sees the end of an older number.
    std::array<char, 24> text{};
    const auto end = fmt::format_to_n(text.data(), text.size(), "{}\n", value);
    static_cast<void>(!::pwrite(counter.descriptor, text.data(), end.size, 0));
  }
}

}  // namespace loom
