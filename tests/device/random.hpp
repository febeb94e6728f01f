// Numbers that depend on a seed alone, the same on CPU and GPU.
#pragma once

#include <weft/device/host_device.hpp>

#include <cstdint>

namespace suite {

// splitmix64 by Vigna, public domain.
inline WEFT_HOST_DEVICE std::uint64_t random_of(std::uint64_t seed) {
  std::uint64_t z = seed + 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

// Of a seed, a PE and a place.
inline WEFT_HOST_DEVICE std::uint64_t random_at(std::uint64_t seed, int pe, std::uint64_t place) {
  return random_of(random_of(seed + static_cast<std::uint64_t>(pe)) + place);
}

}  // namespace suite
