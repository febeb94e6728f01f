#include "tools/perf/device_files.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include "tools/perf/kernel_counters.hpp"

namespace weft::perf {
namespace {

constexpr std::size_t kBufferBytes = 4096;

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

}  // namespace

void read_net_dev(std::string_view text,
                  const std::vector<std::string>& names,
                  std::vector<NicSample>& samples) {
  constexpr int kReceiveColumns = 8;  // proc_net_dev(5)
  std::size_t guess = 0;  // lines come in the order of the names, as long as nothing changes
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
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
  for (const DeviceBytes& device : parse_net_dev(read_text(net_dev_))) {
    names_.push_back(device.name);
  }
  for (const DeviceBytes& device : read_rdma_devices("/sys/class/infiniband")) {
    open_rdma(device.name);
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
                       std::uint64_t NicSample::* direction) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) {
      rdma_.push_back({names_.size() - 1, descriptor, factor, direction});
    }
    return descriptor >= 0;
  };
  std::error_code ignored;
  const std::filesystem::path ports =
      std::filesystem::path("/sys/class/infiniband") / name / "ports";
  for (const auto& port : std::filesystem::directory_iterator(ports, ignored)) {
    // As in read_rdma_devices.
    if (add(port.path() / "hw_counters/tx_bytes", 1, &NicSample::tx_bytes)) {
      add(port.path() / "hw_counters/rx_bytes", 1, &NicSample::rx_bytes);
    } else {
      add(port.path() / "counters/port_xmit_data", 4, &NicSample::tx_bytes);
      add(port.path() / "counters/port_rcv_data", 4, &NicSample::rx_bytes);
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

std::vector<NicSample> DeviceFiles::read() {
  std::vector<NicSample> samples(names_.size());
  read_net_dev(read_text(net_dev_), names_, samples);
  for (const RdmaFile& file : rdma_) {
    std::string_view text = read_text(file.descriptor);
    samples[file.device].*file.direction += file.factor * take_number(text);
  }
  return samples;
}

}  // namespace weft::perf
