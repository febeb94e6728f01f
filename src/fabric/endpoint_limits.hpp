// The maximum sizes of messages, writes and reads of an endpoint, and the size of its completion queue. They are
// queried from the provider; providers that do not know the options have the general values of fi_info.
//
// Private to this folder: no libfabric type leaves it. Control path, one thread.
#pragma once

#include <algorithm>
#include <cstddef>

#include "src/fabric/handles.hpp"
#include "src/fabric/rail.hpp"

namespace weft::fabric {

// Options of fi_endpoint(3) that came with libfabric 1.22; the headers may be older than the library. The values are
// those of its include/rdma/fi_endpoint.h, where the list only grows at its end.
enum EndpointOption : int {
  kOptMaxMessageBytes = 12,
  kOptMaxRmaBytes = 14,
  kOptInjectMessageBytes = 16,
  kOptInjectRmaBytes = 18,
};

#if FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION) >= FI_VERSION(1, 22)
static_assert(kOptMaxMessageBytes == static_cast<int>(FI_OPT_MAX_MSG_SIZE));
static_assert(kOptMaxRmaBytes == static_cast<int>(FI_OPT_MAX_RMA_SIZE));
static_assert(kOptInjectMessageBytes == static_cast<int>(FI_OPT_INJECT_MSG_SIZE));
static_assert(kOptInjectRmaBytes == static_cast<int>(FI_OPT_INJECT_RMA_SIZE));
#endif

// Fills the sizes of `limits`. An endpoint that does not know the options gets the values of `info`, which are the
// maximum over all kinds of operations: its limits for writes are then a claim until they have been tested.
void read_sizes(fid_ep& endpoint, const fi_info& info, RailLimits& limits);

// The preferred and the minimum number of entries of a completion queue.
struct QueueSize {
  std::size_t wanted = 0;
  std::size_t least = 0;
};

// If the provider guards its queues (FI_RM_ENABLED), a full queue only delays senders. Otherwise, as on efa-direct, an
// overrun breaks the endpoint; and peers' immediate data arrives unsolicited, any number of them between two polls.
[[nodiscard]] QueueSize queue_size_for(const fi_info& info);

// Opens with as many entries as possible: halves the number while `open` rejects it. Returns the result of the last
// `open`, 0 or a negative error.
template <typename Open>
int open_largest(QueueSize size, Open&& open) {
  for (std::size_t entries = size.wanted;; entries = std::max(entries / 2, size.least)) {
    const int code = open(entries);
    if (code == 0 || entries <= size.least) {
      return code;
    }
  }
}

}  // namespace weft::fabric
