// Tries once, at start, what a rail claims of writes: the provider may offer injected writes and writes with
// immediate data in fi_getinfo(3) and refuse each of them when it is posted. EFA refuses the first
// (-FI_ENOSYS, efa-direct of libfabric 2.1 to 2.6), Slingshot the second (-FI_EBADFLAGS, 1.22 to 2.6).
//
// The rail writes to itself, so no peer takes part. Control path, before anything else is posted; the owner's
// lock. What has not come back in time is left with the provider: the memory lives as long as the rail.
#pragma once

#include <array>
#include <cstddef>

#include "src/fabric/rail.hpp"

namespace weft::fabric {

inline constexpr std::size_t kTrialBytes = 4096;

// The source of a PE that does not exist, so that news of a trial that come late are for nobody.
inline constexpr std::uint32_t kTrialImmediate = 0xFFFFFFFF;

struct TrialMemory {
  alignas(64) std::array<std::byte, kTrialBytes> source{};
  alignas(64) std::array<std::byte, kTrialBytes> dest{};
  std::array<PostContext, 2> contexts;

  // True for the context of a trial: its event is nobody's.
  [[nodiscard]] bool owns(const PostContext* context) const {
    return context == contexts.data() || context == &contexts[1];
  }
};

// Restricts the rail to what it really takes, if its limits are a claim (RailLimits::is_claim); otherwise
// does nothing. Takes some µs, at most 2 s. Throws Error if memory cannot be registered.
void try_claims(Rail& rail, TrialMemory& memory);

}  // namespace weft::fabric
