#include "src/fabric/hints.hpp"

#include <cerrno>
#include <cstdlib>

#include <sys/resource.h>

#include "src/base/error.hpp"
#include "src/fabric/discovery.hpp"

namespace weft::fabric {

std::string memlock_hint() {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  return limit.rlim_cur == RLIM_INFINITY
             ? std::string("lower WEFT_HEAP_SIZE")
             : fmt::format("raise RLIMIT_MEMLOCK (ulimit -l, now {} KiB) or lower WEFT_HEAP_SIZE",
                           limit.rlim_cur >> 10U);
}

// fi_tcp(7): the ports at which rails listen. 1.17 fails at fi_endpoint or fi_enable, by the size
// of the range.
std::string port_hint(int code, const char* otherwise) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): init
  const char* low = std::getenv("FI_TCP_PORT_LOW_RANGE");
  // NOLINTNEXTLINE(concurrency-mt-unsafe): init
  const char* high = std::getenv("FI_TCP_PORT_HIGH_RANGE");
  const bool is_about_port = code == -EADDRINUSE || code == -EADDRNOTAVAIL;
  if (!is_about_port || (low == nullptr && high == nullptr)) {
    return otherwise;
  }
  return fmt::format(
      "no port is free from FI_TCP_PORT_LOW_RANGE={} to FI_TCP_PORT_HIGH_RANGE={}: each rail of "
      "each PE of this host needs one; widen the range",
      low == nullptr ? "(not set)" : low, high == nullptr ? "(not set)" : high);
}

const std::string& shown_address(const NicInfo& nic) {
  return !nic.address.empty() ? nic.address : !nic.pci.empty() ? nic.pci : nic.name;
}

}  // namespace weft::fabric
