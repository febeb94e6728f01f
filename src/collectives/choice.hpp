// The algorithm of a collective on one node: a single table, by PE count and size in bytes.
// `bench/tune_collectives` measures both algorithms at each size on this machine and prints new
// rows.
//
// Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::collectives {

enum class Collective : std::uint8_t { Alltoall, Broadcast, Collect, Reduce };

// A row applies to teams of at most `pe_count_max`; the first matching row is used.
struct AlgorithmChoice {
  Collective collective;
  std::uint32_t pe_count_max;
  std::size_t publish_bytes_max;  // per PE: up to this size data is copied and published;
                                  // larger data is read from the source, with one more wait
};

// clang-format off
inline constexpr std::array kChoices{
    AlgorithmChoice{Collective::Alltoall, 2, 512},
    AlgorithmChoice{Collective::Alltoall, UINT32_MAX, 32768},
    AlgorithmChoice{Collective::Broadcast, 2, 256},
    AlgorithmChoice{Collective::Broadcast, UINT32_MAX, 16384},
    AlgorithmChoice{Collective::Collect, 2, 512},
    AlgorithmChoice{Collective::Collect, UINT32_MAX, 32768},
    AlgorithmChoice{Collective::Reduce, 2, 256},
    AlgorithmChoice{Collective::Reduce, UINT32_MAX, 8192},
};

// clang-format on

[[nodiscard]] constexpr bool is_published(Collective collective,
                                          std::uint32_t pe_count,
                                          std::size_t bytes) {
  for (const AlgorithmChoice& choice : kChoices) {
    if (choice.collective == collective && pe_count <= choice.pe_count_max) {
      return bytes <= choice.publish_bytes_max;
    }
  }
  return false;
}

}  // namespace weft::collectives
