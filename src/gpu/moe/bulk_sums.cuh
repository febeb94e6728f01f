// Sums of rows whose pieces come through a warp's belt: those of all terms at once, so that a warp has all of its shared memory on
// its way, and no register waits. The same bits as those of sums.cuh.
//
// Device code: all threads of a warp together.
#pragma once

#include "src/gpu/moe/bulk.cuh"
#include "src/gpu/moe/sums.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

inline constexpr std::uint32_t kBulkTermsMax = 8;  // more have pieces that are too short

// Pieces of so many terms that fit into a belt together, about equal.
template <typename Memory>
__device__ std::uint32_t units_of_piece(std::uint32_t terms, std::uint32_t units) {
  constexpr std::uint32_t kAligned = kBulkAlignment / kUnit;
  const std::uint32_t room =
      Memory::kSlots * Memory::kSlotBytes / kBulkAlignment / terms * kAligned;
  const std::uint32_t pieces = (units + room - 1) / room;
  return (units + pieces * kAligned - 1) / (pieces * kAligned) * kAligned;
}

// A piece in a belt: `units` of each of `terms`, `pitch` apart.
struct SumPiece {
  const Vector16* loaded;
  const Terms& terms;
  std::uint32_t pitch;
  std::uint32_t units;
};

// Sums of a piece of kTerms terms (0: as many as they are), two units at once.
template <bool kWeighs, std::uint32_t kTerms>
__device__ void store_sum_of_piece(const SumPiece& piece, Vector16* to, SeenNan& seen) {
  const std::uint32_t terms = kTerms != 0 ? kTerms : piece.terms.count;
  constexpr std::uint32_t kHeld = kTerms != 0 ? kTerms : 1;
  float weights[kHeld] = {};
#pragma unroll
  for (std::uint32_t i = 0; kWeighs && i < kHeld; ++i) {
    weights[i] = piece.terms.weights[i];
  }
#pragma unroll 1
  for (std::uint32_t unit = lane(); unit < piece.units; unit += 2 * kWarp) {
    const bool has_second = unit + kWarp < piece.units;
    UnitSum<Bf16> first;
    UnitSum<Bf16> second;
#pragma unroll
    for (std::uint32_t i = 0; i < terms; ++i) {
      const float weight = !kWeighs ? 0 : kTerms != 0 ? weights[i] : piece.terms.weights[i];
      const Vector16* term = piece.loaded + i * piece.pitch + unit;
      first.add_unit(term[0], kWeighs, weight);
      second.add_unit(has_second ? term[kWarp] : Vector16{}, kWeighs, weight);
    }
    device::store_data(to + unit, first.rounded_numbers(seen));
    if (has_second) {
      device::store_data(to + unit + kWarp, second.rounded_numbers(seen));
    }
  }
}

template <bool kWeighs>
__device__ void store_sum_of_piece(const SumPiece& piece, Vector16* to, SeenNan& seen) {
  switch (piece.terms.count) {
    case 2:
      return store_sum_of_piece<kWeighs, 2>(piece, to, seen);
    case 3:
      return store_sum_of_piece<kWeighs, 3>(piece, to, seen);
    case 4:
      return store_sum_of_piece<kWeighs, 4>(piece, to, seen);
    default:
      return store_sum_of_piece<kWeighs, 0>(piece, to, seen);
  }
}

// Behind a barrier of the warp's threads that have written `terms`, and acquired what these are, and fence_global_for_bulk. 1 to kBulkTermsMax
// terms of bfloat16s. False if some sum may be NaN, whose bits are left to the caller: the code for them would lie in the loop.
template <bool kWeighs, typename Memory>
__device__ bool store_sum_by_bulk(const Belt<Memory>& belt,
                                  const Terms& terms,
                                  std::uint32_t units,
                                  std::byte* out) {
  const std::uint32_t pitch = units_of_piece<Memory>(terms.count, units);
  const auto* loaded = reinterpret_cast<const Vector16*>(belt.slot(0));
  auto* to = reinterpret_cast<Vector16*>(out);
  SeenNan seen;
#pragma unroll 1
  for (std::uint32_t first = 0; first < units; first += pitch) {
    const std::uint32_t some = min(pitch, units - first);
    if (lane() == 0) {
      belt.load_together(terms.count, pitch * kUnit, some * kUnit, [&](std::uint32_t i) {
        return terms.from[i] + std::size_t{first} * kUnit;
      });
    }
    belt.await(0);
    store_sum_of_piece<kWeighs>({loaded, terms, pitch, some}, to + first, seen);
    fence_shared_for_bulk();
    __syncwarp();  // all have read the piece, and the phase
    if (lane() == 0) {
      belt.taken(0);
    }
    __syncwarp();
  }
  return __any_sync(kAllLanes, seen.maybe()) == 0;
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
