// What a row's size means to each collective: how many elements each PE gives, where they land, and
// what part of the bytes crosses the wires. Pure, and the same on every PE.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::perf {

enum class Collective : std::uint8_t { Alltoall, Broadcast, Fcollect, Collect, Reduction };
enum class Synchronization : std::uint8_t { Barrier, Sync };

// A block of a buffer, in bytes.
struct Block {
  std::size_t offset = 0;
  std::size_t size = 0;
};

struct CollectiveShape {
  Collective collective = Collective::Alltoall;
  std::uint32_t pe_count = 1;
  std::size_t element_bytes = 4;
  std::size_t count = 0;  // elements of one block; on average for collect

  [[nodiscard]] std::size_t block_bytes() const { return count * element_bytes; }

  // What one PE's source and dest hold.
  [[nodiscard]] std::size_t source_bytes(std::uint32_t pe) const;
  [[nodiscard]] std::size_t dest_bytes() const;

  // Where the data of PE `from` lies in the dest of every PE (alltoall, fcollect, collect). In
  // collect even PEs give one element more than `count`, the odd ones after them one less: lengths
  // differ, and the load of the PEs hardly does.
  [[nodiscard]] Block block_from(std::uint32_t from) const;
};

// The size of a row is that of the larger buffer: for alltoall, fcollect and collect the blocks of
// all PEs together, for broadcast and reduction the one block. No elements if it is too small for a
// row.
[[nodiscard]] CollectiveShape shape_for(Collective collective,
                                        std::uint32_t pe_count,
                                        std::size_t element_bytes,
                                        std::size_t row_size);

// Bus bandwidth / algorithm bandwidth: (n-1)/n; 2(n-1)/n for reductions; 1 for broadcast.
[[nodiscard]] double bus_factor(Collective collective, std::uint32_t pe_count);

}  // namespace weft::perf
