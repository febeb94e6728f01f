// What an endpoint takes in one message, write or read, and how large its completion queue should be:
// asked of the provider, with what fi_info says in general as the answer of those that do not know.
//
// Private to this folder: no libfabric type leaves it. Control path, one thread.
#pragma once

#include <algorithm>
#include <cstddef>

#include "src/fabric/handles.hpp"
#include "src/fabric/rail.hpp"

namespace weft::fabric {

// Options of fi_endpoint(3) that came with libfabric 1.22; the headers may be older than the library.
// The numbers are those of its include/rdma/fi_endpoint.h, where the list only grows at its end.
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

// Fills the sizes of `limits`. An endpoint that does not know the options has those of `info`, which are the
// largest of all kinds of operations: what it says of writes is then a claim, until it has been tried.
void read_sizes(fid_ep& endpoint, const fi_info& info, RailLimits& limits);

// Entries of a completion queue: how many one would like, and how few will do.
struct QueueSize {
  std::size_t wanted = 0;
  std::size_t least = 0;
};

// Where the provider guards its queues (FI_RM_ENABLED) a queue that is full only holds senders up. Where it
// does not, as on efa-direct, an overrun ends the endpoint; and peers' immediates arrive unasked, from any
// number of them between two looks.
[[nodiscard]] QueueSize queue_size_for(const fi_info& info);

// Opens with as many entries as are taken: halves the number while `open` refuses it. Returns what the last
// `open` did, 0 or a negative error.
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
