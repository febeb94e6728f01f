// Bytes of every network device as the kernel counts them: interfaces from /proc/self/net/dev, which
// shows the caller's own network namespace, and RDMA devices from sysfs, because their traffic passes
// the kernel by.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::perf {

struct DeviceBytes {
  std::string name;
  std::uint64_t tx_bytes = 0;
  std::uint64_t rx_bytes = 0;
};

// Pure: the text of /proc/net/dev; see proc_net_dev(5).
[[nodiscard]] std::vector<DeviceBytes> parse_net_dev(std::string_view text);

// RDMA devices below `root` (/sys/class/infiniband); none if there is no such folder.
[[nodiscard]] std::vector<DeviceBytes> read_rdma_devices(const std::string& root);

// All devices of this process's namespace.
[[nodiscard]] std::vector<DeviceBytes> read_devices();

}  // namespace weft::perf
