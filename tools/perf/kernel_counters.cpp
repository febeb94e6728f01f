#include "tools/perf/kernel_counters.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

namespace weft::perf {
namespace {

namespace fs = std::filesystem;

std::optional<std::uint64_t> read_number(const fs::path& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  if (file >> number) {
    return number;
  }
  return std::nullopt;
}

// EFA counts bytes in hw_counters; others count words of four octets in counters (InfiniBand
// specification, PortCounters: PortXmitData, PortRcvData).
void add_port(const fs::path& port, DeviceBytes& device) {
  if (const auto tx = read_number(port / "hw_counters/tx_bytes")) {
    device.tx_bytes += *tx;
    device.rx_bytes += read_number(port / "hw_counters/rx_bytes").value_or(0);
    return;
  }
  device.tx_bytes += 4 * read_number(port / "counters/port_xmit_data").value_or(0);
  device.rx_bytes += 4 * read_number(port / "counters/port_rcv_data").value_or(0);
}

}  // namespace

std::vector<DeviceBytes> parse_net_dev(std::string_view text) {
  std::vector<DeviceBytes> devices;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) {
      continue;  // the two header lines
    }
    std::istringstream name(line.substr(0, colon));
    std::istringstream numbers(line.substr(colon + 1));
    DeviceBytes device;
    name >> device.name;
    std::uint64_t skipped = 0;
    numbers >> device.rx_bytes;
    for (int i = 0; i < 7; ++i) {
      numbers >> skipped;
    }
    if (numbers >> device.tx_bytes) {
      devices.push_back(device);
    }
  }
  return devices;
}

std::vector<DeviceBytes> read_rdma_devices(const std::string& root) {
  std::vector<DeviceBytes> devices;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root, ignored)) {
    DeviceBytes device{.name = entry.path().filename().string()};
    for (const auto& port : fs::directory_iterator(entry.path() / "ports", ignored)) {
      add_port(port.path(), device);
    }
    devices.push_back(device);
  }
  return devices;
}

std::vector<DeviceBytes> read_devices() {
  std::ifstream file("/proc/self/net/dev");
  std::vector<DeviceBytes> devices =
      parse_net_dev(std::string(std::istreambuf_iterator<char>(file), {}));
  for (DeviceBytes& device : read_rdma_devices("/sys/class/infiniband")) {
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace weft::perf
