// The cores that processes may run on, as sets that they can exchange and unite.
//
// Pure, except for own_cores(), which asks the kernel about the calling thread.
// Cores above 1,023 are left out.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace weft::topology {

// One bit per core.
using CoreMask = std::array<std::uint64_t, 16>;

// Of the calling thread. Core 0 alone if the kernel does not tell.
[[nodiscard]] CoreMask own_cores();

// The number of cores that are in any of the masks.
[[nodiscard]] std::uint32_t core_count(std::span<const CoreMask> masks);

}  // namespace weft::topology
