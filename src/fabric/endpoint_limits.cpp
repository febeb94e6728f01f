#include "src/fabric/endpoint_limits.hpp"

#include <string_view>

namespace weft::fabric {
namespace {

constexpr std::size_t kGuardedEntries = 4096;
// An unguarded queue must hold the immediate data that all peers may send between two polls.
constexpr std::size_t kUnguardedEntries = 32768;
constexpr std::size_t kLeastEntries = 1024;

// The endpoint's value of the option, or `otherwise` if it does not know it.
std::size_t ask(fid_ep& endpoint, EndpointOption option, std::size_t otherwise) {
  std::size_t value = 0;
  std::size_t bytes = sizeof(value);
  const int code = fi_getopt(&endpoint.fid, FI_OPT_ENDPOINT, option, &value, &bytes);
  return code == 0 && bytes == sizeof(value) ? value : otherwise;
}

}  // namespace

void read_sizes(fid_ep& endpoint, const fi_info& info, RailLimits& limits) {
  const std::size_t inject = info.tx_attr->inject_size;
  const std::size_t largest = info.ep_attr->max_msg_size;
  limits.inject_bytes = ask(endpoint, kOptInjectMessageBytes, inject);
  limits.inject_write_bytes = ask(endpoint, kOptInjectRmaBytes, inject);
  limits.message_bytes_max = ask(endpoint, kOptMaxMessageBytes, largest);
  limits.rma_bytes_max = ask(endpoint, kOptMaxRmaBytes, largest);
}

QueueSize queue_size_for(const fi_info& info) {
  const std::size_t own = info.tx_attr->size + info.rx_attr->size;
  if (info.domain_attr->resource_mgmt == FI_RM_ENABLED) {
    return {.wanted = kGuardedEntries, .least = kGuardedEntries};
  }
  // With fewer entries, the queue could overrun from this side's own posts alone.
  const std::size_t least = std::max(kLeastEntries, own);
  return {.wanted = std::max(kUnguardedEntries, least), .least = least};
}

}  // namespace weft::fabric
