#include "src/fabric/endpoint_limits.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include "src/fabric/quirks.hpp"

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

std::string_view text_of(const char* name) {
  return name == nullptr ? "" : name;
}

// efa-direct reports FI_RM_ENABLED in libfabric 2.1 to 2.7 because its device repeats sends for
// which the receiver has no buffer. Its completion queue is not protected:
// docs/efa_fabric_comparison.md of the provider.
bool is_guarded(const fi_info& info) {
  const std::string_view fabric = text_of(info.fabric_attr->name);
  const bool is_believed = fabric.empty() || std::ranges::find(provider_quirks(), fabric,
                                                               &ProviderQuirk::unguarded_fabric) ==
                                                 provider_quirks().end();
  return info.domain_attr->resource_mgmt == FI_RM_ENABLED && is_believed;
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
  const ProviderQuirk& quirk = quirk_of(text_of(info.fabric_attr->prov_name));
  if (is_guarded(info)) {
    return {.wanted = std::max(kGuardedEntries, quirk.queue_entries_min),
            .least = kGuardedEntries,
            .own = own,
            .is_guarded = true};
  }
  // With fewer entries, the queue could overrun from this side's own posts alone.
  const std::size_t least = std::max(kLeastEntries, own);
  return {.wanted = std::max(kUnguardedEntries, least), .least = least, .own = own};
}

std::size_t immediates_max_of(const QueueSize& size, std::size_t entries) {
  if (size.is_guarded) {
    return std::numeric_limits<std::size_t>::max();
  }
  // A quarter stays free: a signal may be acknowledged while another rail's queue still holds the
  // last of its pieces.
  return entries > size.own ? (entries - size.own) / 4 * 3 : 0;
}

}  // namespace weft::fabric
