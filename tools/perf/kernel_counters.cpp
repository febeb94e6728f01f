#include "tools/perf/kernel_counters.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

namespace weft::perf {
namespace {

constexpr std::size_t kBufferBytes = 4096;
constexpr const char* kRdmaDevices = "/sys/class/infiniband";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

std::uint64_t take_number(std::string_view& text) {
  text = trimmed(text);
  std::uint64_t number = 0;
  const char* end = std::from_chars(text.data(), text.data() + text.size(), number).ptr;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// Without the end of the line.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

std::vector<std::string> interfaces_in(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos) {  // not one of the two header lines
      names.emplace_back(trimmed(line.substr(0, colon)));
    }
  }
  return names;
}

void read_net_dev(std::string_view text,
                  const std::vector<std::string>& names,
                  std::vector<NicBytes>& samples) {
  constexpr int kReceiveColumns = 8;  // proc_net_dev(5)
  std::size_t guess = 0;  // lines come in the order of the names, as long as nothing changes
  while (!text.empty()) {
    std::string_view line = take_line(text);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      continue;
    }
    const std::string_view name = trimmed(line.substr(0, colon));
    if (guess >= names.size() || names[guess] != name) {
      guess = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
    }
    if (guess < names.size()) {
      line.remove_prefix(colon + 1);
      samples[guess].rx_bytes = take_number(line);
      for (int column = 1; column < kReceiveColumns; ++column) {
        static_cast<void>(take_number(line));
      }
      samples[guess].tx_bytes = take_number(line);
      ++guess;
    }
  }
}

DeviceFiles::DeviceFiles()
    : net_dev_(::open("/proc/self/net/dev", O_RDONLY | O_CLOEXEC)), buffer_(kBufferBytes, '\0') {
  names_ = interfaces_in(read_text(net_dev_));
  std::error_code ignored;
  for (const auto& device : std::filesystem::directory_iterator(kRdmaDevices, ignored)) {
    open_rdma(device.path().filename());
  }
}

DeviceFiles::~DeviceFiles() {
  for (const RdmaFile& file : rdma_) {
    ::close(file.descriptor);
  }
  if (net_dev_ >= 0) {
    ::close(net_dev_);
  }
}

void DeviceFiles::open_rdma(const std::string& name) {
  names_.push_back(name);
  const auto add = [&](const std::filesystem::path& path, std::uint64_t factor,
                       Direction direction) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) {
      rdma_.push_back({names_.size() - 1, descriptor, factor, direction});
    }
    return descriptor >= 0;
  };
  std::error_code ignored;
  const std::filesystem::path ports = std::filesystem::path(kRdmaDevices) / name / "ports";
  for (const auto& port : std::filesystem::directory_iterator(ports, ignored)) {
    // EFA counts bytes in hw_counters; others count words of four octets in counters (InfiniBand
    // specification, PortCounters: PortXmitData, PortRcvData).
    if (add(port.path() / "hw_counters/tx_bytes", 1, &NicBytes::tx_bytes)) {
      add(port.path() / "hw_counters/rx_bytes", 1, &NicBytes::rx_bytes);
    } else {
      add(port.path() / "counters/port_xmit_data", 4, &NicBytes::tx_bytes);
      add(port.path() / "counters/port_rcv_data", 4, &NicBytes::rx_bytes);
    }
  }
}

std::string_view DeviceFiles::read_text(int descriptor) {
  std::size_t length = 0;
  while (descriptor >= 0) {
    const ssize_t count = ::pread(descriptor, buffer_.data() + length, buffer_.size() - length,
                                  static_cast<off_t>(length));
    if (count <= 0) {
      break;
    }
    length += static_cast<std::size_t>(count);
    if (length == buffer_.size()) {
      buffer_.resize(2 * length);
    }
  }
  return {buffer_.data(), length};
}

std::vector<NicBytes> DeviceFiles::read() {
  std::vector<NicBytes> samples(names_.size());
  read_net_dev(read_text(net_dev_), names_, samples);
  for (const RdmaFile& file : rdma_) {
    std::string_view text = read_text(file.descriptor);
    samples[file.device].*file.direction += file.factor * take_number(text);
  }
  return samples;
}

}  // namespace weft::perf
