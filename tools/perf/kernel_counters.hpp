// Bytes of every network device as the kernel counts them: interfaces from /proc/self/net/dev,
// which shows the caller's own network namespace, and RDMA devices from sysfs, because their
// traffic passes the kernel by. Files stay open, so that a look is one read of /proc/self/net/dev
// and two small files of each RDMA device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/perf/nic_bytes.hpp"

namespace weft::perf {

// Pure: the interfaces in the text of /proc/net/dev; see proc_net_dev(5).
[[nodiscard]] std::vector<std::string> interfaces_in(std::string_view text);

// Pure: fills the bytes of the interfaces named, in the order of `names`, from the text of
// /proc/net/dev. What is not there stays as it is.
void read_net_dev(std::string_view text,
                  const std::vector<std::string>& names,
                  std::vector<NicBytes>& samples);

// The devices of this process's namespace, with their files open. One thread at a time.
class DeviceFiles {
 public:
  DeviceFiles();
  ~DeviceFiles();
  DeviceFiles(const DeviceFiles&) = delete;
  DeviceFiles& operator=(const DeviceFiles&) = delete;
  DeviceFiles(DeviceFiles&&) = delete;
  DeviceFiles& operator=(DeviceFiles&&) = delete;

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

  // In the order of names().
  [[nodiscard]] std::vector<NicBytes> read();

 private:
  struct RdmaFile {
    std::size_t device = 0;
    int descriptor = -1;
    std::uint64_t factor = 1;
    Direction direction = nullptr;
  };

  void open_rdma(const std::string& name);
  [[nodiscard]] std::string_view read_text(int descriptor);

  std::vector<std::string> names_;
  int net_dev_ = -1;
  std::vector<RdmaFile> rdma_;
  std::string buffer_;
};

}  // namespace weft::perf
