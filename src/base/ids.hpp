// Strong types for numbers that must not be mixed, with the standard terms as names.
//
// Construction and access are explicit. Values of the same type compare; nothing else is implied.
// docs/GLOSSARY.md defines each term.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace weft {

template <typename Tag, typename Representation>
struct StrongId {
  Representation value{};

  constexpr StrongId() = default;

  constexpr explicit StrongId(Representation v) : value(v) {}

  friend constexpr auto operator<=>(StrongId, StrongId) = default;
};

// A process of the job, 0 .. pe_count - 1.
using Pe = StrongId<struct PeTag, std::uint32_t>;
// A rail of one PE: one NIC that this PE opened, 0 .. rail_count - 1.
using RailIndex = StrongId<struct RailTag, std::uint32_t>;
// A symmetric region: 0 is the heap, others are registered windows.
using RegionIndex = StrongId<struct RegionTag, std::uint32_t>;
// Bytes from the start of a region; the same on every PE.
using HeapOffset = StrongId<struct HeapOffsetTag, std::uint64_t>;
// The key that a NIC requires before a peer may access a region.
using RemoteKey = StrongId<struct RemoteKeyTag, std::uint64_t>;

inline constexpr std::size_t kCacheLineBytes = 64;
inline constexpr std::size_t kRailCountMax = 32;
// The most regions of one PE at a time: the heap, the globals, windows. Numbers are reused.
inline constexpr std::size_t kRegionCountMax = 1024;

}  // namespace weft

template <typename Tag, typename Representation>
struct std::hash<weft::StrongId<Tag, Representation>> {
  std::size_t operator()(weft::StrongId<Tag, Representation> id) const noexcept {
    return std::hash<Representation>{}(id.value);
  }
};
