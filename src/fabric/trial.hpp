// Tests once, at start, what a rail claims about writes. A provider may offer injected writes and
// writes with immediate data in fi_getinfo(3) and reject each of them when it is posted. EFA
// rejects the former (-FI_ENOSYS, efa-direct of libfabric 2.1 to 2.6), Slingshot the latter
// (-FI_EBADFLAGS, 1.22 to 2.6).
//
// The rail writes to itself, so no peer takes part. Control path, before anything else is posted
// but receives; under the owner's lock. Operations that have not completed in time stay with the
// provider: the memory lives as long as the rail.
#pragma once

#include <array>
#include <cstddef>

#include "src/fabric/rail.hpp"

namespace weft::fabric {

inline constexpr std::size_t kTrialBytes = 4096;

// Names a PE that does not exist as the source, so that late events of a trial match no PE.
inline constexpr std::uint32_t kTrialImmediate = 0xFFFFFFFF;

struct TrialMemory {
  alignas(64) std::array<std::byte, kTrialBytes> source{};
  alignas(64) std::array<std::byte, kTrialBytes> dest{};
  std::array<PostContext, 2> contexts;
  // The posted receive that the immediate data of the trial used up, if the provider takes one: to
  // be posted again.
  const PostContext* used_receive = nullptr;

  // True for the context of a trial: its event must be ignored.
  [[nodiscard]] bool owns(const PostContext* context) const {
    return context == contexts.data() || context == &contexts[1];
  }
};

// Restricts the rail to what it actually supports, if its limits are a claim
// (RailLimits::is_claim); otherwise does nothing. Takes some µs, at most 2 s. Receives have to be
// posted: some providers use one up for each piece of immediate data, and do not let it arrive
// without. Throws Error if memory cannot be registered.
void try_claims(Rail& rail, TrialMemory& memory);

}  // namespace weft::fabric
