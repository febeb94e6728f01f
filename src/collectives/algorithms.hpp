// The algorithms of the collectives. One set is for teams on one node, whose members load and store
// each other's memory; the other is for teams that span nodes, which put over all rails of all
// their PEs. The sizes are the same on all members; `dest` and `source` are symmetric.
//
// Threads: as Team.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "src/collectives/reduce.hpp"
#include "src/collectives/team.hpp"

namespace weft::collectives {

// The two sides of a collective.
struct Sides {
  std::byte* dest = nullptr;
  const std::byte* source = nullptr;
};

// Blocks of `count` elements with strides of `dest` and `source` elements.
struct Strides {
  std::size_t dest = 1;
  std::size_t source = 1;
  std::size_t element_bytes = 1;
  std::size_t count = 0;
};

// What Collectives::exchange shows and gets: `all` has room for one note of each member.
struct Notes {
  std::string_view name;  // of the call, for a long wait
  std::span<const std::byte> mine;
  std::span<std::byte> all;
};

enum class ScanKind : std::uint8_t { Inclusive, Exclusive };

struct Scan {
  Reducer reducer;
  ScanKind kind = ScanKind::Inclusive;
};

namespace on_node {

Status alltoall(Team& team, Sides sides, std::size_t bytes_per_pe);
Status alltoalls(Team& team, Sides sides, const Strides& strides);
Status broadcast(Team& team, Sides sides, std::size_t bytes, std::uint32_t root);
Status fcollect(Team& team, Sides sides, std::size_t bytes);
Status collect(Team& team, Sides sides, std::size_t bytes);
Status reduce(Team& team, Sides sides, std::size_t count, Reducer reducer);
Status scan(Team& team, Sides sides, std::size_t count, const Scan& scan);
Status exchange(Team& team, const Notes& notes);

}  // namespace on_node

namespace between_nodes {

Status alltoall(Team& team, Sides sides, std::size_t bytes_per_pe);
Status alltoalls(Team& team, Sides sides, const Strides& strides);
Status broadcast(Team& team, Sides sides, std::size_t bytes, std::uint32_t root);
Status fcollect(Team& team, Sides sides, std::size_t bytes);
Status collect(Team& team, Sides sides, std::size_t bytes);
Status reduce(Team& team, Sides sides, std::size_t count, Reducer reducer);
Status scan(Team& team, Sides sides, std::size_t count, const Scan& scan);
Status exchange(Team& team, const Notes& notes);

}  // namespace between_nodes
}  // namespace weft::collectives
