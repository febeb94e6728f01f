// The maximum sizes of messages, writes and reads of an endpoint, and the size of its completion
// queue. They are queried from the provider; providers that do not know the options have the
// general values of fi_info.
//
// Private to this folder: no libfabric type leaves it. Control path, one thread.
#pragma once

#include <algorithm>
#include <cstddef>

#include "src/fabric/handles.hpp"
#include "src/fabric/rail.hpp"

namespace weft::fabric {

// Options of fi_endpoint(3), all but the first of libfabric 1.22; the headers may be older than the
// library. The values are those of its include/rdma/fi_endpoint.h, where the list only grows at its
// end.
enum EndpointOption : int {
  kOptCudaApiPermitted = 10,  // 1.18
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

// Fills the sizes of `limits`. An endpoint that does not know the options gets the values of
// `info`, which are the maximum over all kinds of operations: its limits for writes are then a
// claim until they have been tested.
void read_sizes(fid_ep& endpoint, const fi_info& info, RailLimits& limits);

// The preferred and the minimum number of entries of a completion queue.
struct QueueSize {
  std::size_t wanted = 0;
  std::size_t least = 0;
  std::size_t own = 0;      // entries that this side's own posts can take
  bool is_guarded = false;  // a full queue only delays senders
};

// Unguarded, an overrun breaks the endpoint or loses entries; and immediate data of peers arrives
// unsolicited. FI_RM_ENABLED is not believed of efa-direct, which reports it from libfabric 2.1 on
// for its retries alone: quirks.hpp.
[[nodiscard]] QueueSize queue_size_for(const fi_info& info);

// How much immediate data of peers a queue of `entries` has room for: RailLimits::immediates_max.
[[nodiscard]] std::size_t immediates_max_of(const QueueSize& size, std::size_t entries);

// Opens with as many entries as possible: halves the number while `open` rejects it. Returns the
// result of the last `open`, 0 or a negative error.
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
