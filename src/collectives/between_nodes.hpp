// What the algorithms between nodes share: sending with a count, reading from mates, the end of a
// call. For the files between_nodes*.cpp alone.
//
// Threads: as Team.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "src/collectives/team.hpp"

namespace weft::collectives::between_nodes {

// Shorter data takes one lane.
inline constexpr std::size_t kLaneBytesMin = std::size_t{16} << 10U;

// Puts `data` to `dest` of a member and then adds one to its arrivals.
Status send(Team& team, std::uint32_t to, std::byte* dest, std::span<const std::byte> data);

// What this PE sent has left its source, and its mates have read what they read of it.
Status finish(Team& team, std::string_view name);

// From symmetric memory of a mate, or of this PE.
Status copy_from_mate(
    Team& team, std::uint32_t mate, std::byte* dest, const std::byte* source, std::size_t bytes);

}  // namespace weft::collectives::between_nodes
