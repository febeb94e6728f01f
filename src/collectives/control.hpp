// The words of the heap's control page by which PEs meet. They lie at the same offset on every PE and
// are written by peers through rma, so that one page serves shared memory and fabric alike.
//
// Every word only grows, and by additions: signals of two calls may overtake each other, sums may not.
#pragma once

#include <array>
#include <cstdint>

#include "src/base/ids.hpp"

namespace weft::collectives {

// Rounds of a dissemination over 2^32 PEs.
inline constexpr std::uint32_t kRoundCountMax = 32;

struct alignas(kCacheLineBytes) ControlWord {
  std::uint64_t value = 0;
};

// What a PE asks for in a collective allocation, for all to compare.
struct alignas(kCacheLineBytes) CollectiveRequest {
  std::uint64_t kind = 0;
  std::uint64_t bytes = 0;
  std::uint64_t alignment = 0;
  std::uint64_t offset = 0;

  friend bool operator==(const CollectiveRequest&, const CollectiveRequest&) = default;
};

struct ControlPage {
  std::array<ControlWord, kRoundCountMax> sync_arrivals;  // by round: how often the sender came
  ControlWord alltoall_arrivals;                          // blocks that have arrived, of all calls
  ControlWord broadcast_arrivals;                         // calls in which the data has arrived
  CollectiveRequest request;                              // read by peers between two sync_all
  ControlWord probe;  // the target of writes that only open or try a connection; nobody reads it
};

// Bytes before the user's memory: whole pages, so that the heap itself starts on one.
inline constexpr std::uint64_t kControlBytes = 4096;
static_assert(sizeof(ControlPage) <= kControlBytes);

}  // namespace weft::collectives
