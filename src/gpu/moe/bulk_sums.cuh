// Sums of rows whose pieces come through a warp's belt: those of all terms at once, so that a warp has all of its shared memory on
// its way, and no register waits. The same bits as those of sums.cuh.
//
// Device code: all threads of a warp together.
#pragma once

#include "src/gpu/moe/bulk.cuh"
#include "src/gpu/moe/sums.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

// Two terms are added faster through registers (store_sum_of_two), and more than these have pieces that are too short.
inline constexpr std::uint32_t kBulkTermsMin = 3;
inline constexpr std::uint32_t kBulkTermsMax = 8;

// One unit of the piece, of all terms.
template <typename Type>
__device__ Vector16
sum_of_piece(const Vector16* piece, std::uint32_t pitch, const Terms& terms, bool weighs) {
  UnitSum<Type> sum;
#pragma unroll 4
  for (std::uint32_t i = 0; i < terms.count; ++i) {
    sum.add_unit(piece[i * pitch], weighs, terms.weights[i]);
  }
  return sum.rounded();
}

// Behind a barrier of the warp's threads that have written `terms`, and acquired what these are. 1 to kBulkTermsMax terms.
template <typename Type, typename Memory>
__device__ void store_sum_by_bulk(
    const Belt<Memory>& belt, const Terms& terms, std::uint32_t units, std::byte* to, bool weighs) {
  const std::uint32_t room = Memory::kSlots * Memory::kSlotBytes / kUnit / terms.count;
  const std::uint32_t pieces = (units + room - 1) / room;
  const std::uint32_t pitch = (units + pieces - 1) / pieces;
  const auto* loaded = reinterpret_cast<const Vector16*>(belt.slot(0));
  if (lane() == 0) {
    fence_for_bulk();
  }
#pragma unroll 1
  for (std::uint32_t first = 0; first < units; first += pitch) {
    const std::uint32_t some = min(pitch, units - first);
    if (lane() == 0) {
      belt.load_together(terms.count, pitch * kUnit, some * kUnit, [&](std::uint32_t i) {
        return terms.from[i] + std::size_t{first} * kUnit;
      });
    }
    belt.await(0);
#pragma unroll 1
    for (std::uint32_t unit = lane(); unit < some; unit += kWarp) {
      device::store_data(reinterpret_cast<Vector16*>(to) + first + unit,
                         sum_of_piece<Type>(loaded + unit, pitch, terms, weighs));
    }
    __syncwarp();  // all have read the piece, and the phase
    if (lane() == 0) {
      belt.taken(0);
    }
    __syncwarp();
  }
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
