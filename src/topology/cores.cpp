#include "src/topology/cores.hpp"

#include <algorithm>
#include <bit>
#include <functional>

#include <sched.h>

namespace weft::topology {

CoreMask own_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CoreMask mask{};
  if (::sched_getaffinity(0, sizeof set, &set) != 0) {
    mask[0] = 1;
    return mask;
  }
  for (std::size_t core = 0; core < mask.size() * 64; ++core) {
    mask[core / 64] |= static_cast<std::uint64_t>(CPU_ISSET(core, &set) ? 1 : 0) << core % 64;
  }
  return mask;
}

std::uint32_t core_count(std::span<const CoreMask> masks) {
  CoreMask all{};
  for (const CoreMask& mask : masks) {
    std::ranges::transform(all, mask, all.begin(), std::bit_or());
  }
  std::uint32_t count = 0;
  for (const std::uint64_t word : all) {
    count += static_cast<std::uint32_t>(std::popcount(word));
  }
  return count;
}

}  // namespace weft::topology
