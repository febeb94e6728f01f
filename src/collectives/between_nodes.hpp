// Shared by the algorithms between nodes: send with a count, read from mates, and the end of a
// call. Only for the files between_nodes*.cpp.
//
// Threads: as Team.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "src/collectives/team.hpp"

namespace weft::collectives::between_nodes {

// Shorter data is sent in one slice.
inline constexpr std::size_t kSliceBytesMin = std::size_t{16} << 10U;

// Puts `data` to `dest` of a member, then adds one to its arrivals.
Status send(Team& team, std::uint32_t to, std::byte* dest, std::span<const std::byte> data);

// Puts `result` to the same memory of a member, then adds one to its results.
Status send_result_to(Team& team, std::uint32_t to, std::span<const std::byte> result);

// Waits until this PE's source may be reused, and until its mates have read what they need from it.
Status finish(Team& team, std::string_view name);

// Copies from symmetric memory of a mate, or of this PE.
Status copy_from_mate(
    Team& team, std::uint32_t mate, std::byte* dest, const std::byte* source, std::size_t bytes);

}  // namespace weft::collectives::between_nodes
