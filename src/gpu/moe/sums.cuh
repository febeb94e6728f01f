// Sums of rows, by a group: in the order of the terms, with as many loads on their way as registers hold.
// Products and sums are not contracted, so they have the bits of the CPU's (element.cuh).
//
// Device code: all threads of a group together. Terms lie in shared memory, behind the group's barrier.
#pragma once

#include "src/gpu/moe/element.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

// Rows that a group adds up or copies.
struct Terms {
  const std::byte* from[kTopkMax];
  float weights[kTopkMax];
  std::uint32_t count;
};

// The group's terms from `first` on, at most kTerms: in registers.
template <std::uint32_t kTerms>
struct SomeTerms {
  const Vector16* from[kTerms];
  float weights[kTerms];
  std::uint32_t first;
  std::uint32_t count;

  __device__ SomeTerms(const Terms& terms, std::uint32_t its_first)
      : first(its_first), count(terms.count - its_first) {
#pragma unroll
    for (std::uint32_t i = 0; i < kTerms; ++i) {
      from[i] = nullptr;
      weights[i] = 0;
      if (i < count) {
        from[i] = reinterpret_cast<const Vector16*>(terms.from[first + i]);
        weights[i] = terms.weights[first + i];
      }
    }
  }
};

// How a sum loads its terms and stores what it makes: from and to memory that is read behind a barrier.
struct Plainly {
  static __device__ Vector16 load(const Vector16* from) { return device::load_shared(from); }

  // Behind the loads of `terms`, those of a group from `first` on: loaded[u][i] is unit + u * the group's size of term i.
  template <Rows kRows, std::uint32_t kUnitsAtOnce, std::uint32_t kTerms>
  static __device__ void settle(const SomeTerms<kTerms>& /*terms*/,
                                std::uint32_t /*unit*/,
                                std::uint32_t /*units*/,
                                Vector16 (& /*loaded*/)[kUnitsAtOnce][kTerms]) {}

  static __device__ void store(Vector16* to, const Vector16& data) { device::store_data(to, data); }
};

// Adds up to kTerms terms to the sums of kUnitsAtOnce units, a group's threads apart, with all loads on their way together.
template <typename Type,
          Rows kRows,
          std::uint32_t kUnitsAtOnce,
          std::uint32_t kTerms,
          typename Moves>
__device__ void add_terms(const SomeTerms<kTerms>& terms,
                          std::uint32_t unit,
                          std::uint32_t units,
                          bool weighs,
                          UnitSum<Type> (&sums)[kUnitsAtOnce],
                          Moves& moves) {
  Vector16 loaded[kUnitsAtOnce][kTerms];
#pragma unroll
  for (std::uint32_t u = 0; u < kUnitsAtOnce; ++u) {
#pragma unroll
    for (std::uint32_t i = 0; i < kTerms; ++i) {
      if (i < terms.count && unit + u * Group::size<kRows>() < units) {
        loaded[u][i] = moves.load(terms.from[i] + unit + u * Group::size<kRows>());
      }
    }
  }
  moves.template settle<kRows>(terms, unit, units, loaded);
#pragma unroll
  for (std::uint32_t u = 0; u < kUnitsAtOnce; ++u) {
#pragma unroll
    for (std::uint32_t i = 0; i < kTerms; ++i) {
      if (i < terms.count && unit + u * Group::size<kRows>() < units) {
        sums[u].add_unit(loaded[u][i], weighs, terms.weights[i]);
      }
    }
  }
}

// The group's terms, added in their order, to `to`: a thread has kUnitsAtOnce units at once, or one if they are not `together`, and
// kTerms terms of each. (The code is the same for 1 unit and for several: written for one alone, the kernels for few rows spilled 24
// bytes.)
template <typename Type,
          Rows kRows,
          std::uint32_t kUnitsAtOnce,
          std::uint32_t kTerms,
          typename Moves = Plainly>
__device__ void store_sum_by(const Terms& all,
                             std::uint32_t units,
                             std::byte* to,
                             bool weighs,
                             Moves&& moves = {},
                             bool together = true) {
  const SomeTerms<kTerms> terms(all, 0);
  const std::uint32_t step = (together ? kUnitsAtOnce : 1) * Group::size<kRows>();
#pragma unroll 1
  for (std::uint32_t unit = Group::thread(); unit < units; unit += step) {
    const std::uint32_t end = together ? units : min(units, unit + 1);
    UnitSum<Type> sums[kUnitsAtOnce];
    add_terms<Type, kRows>(terms, unit, end, weighs, sums, moves);
#pragma unroll 1
    for (std::uint32_t first = kTerms; first < all.count; first += kTerms) {
      add_terms<Type, kRows>(SomeTerms<kTerms>(all, first), unit, end, weighs, sums, moves);
    }
#pragma unroll
    for (std::uint32_t u = 0; u < kUnitsAtOnce; ++u) {
      if (unit + u * Group::size<kRows>() < end) {
        moves.store(reinterpret_cast<Vector16*>(to) + unit + u * Group::size<kRows>(),
                    sums[u].rounded());
      }
    }
  }
}

// At most two terms, several units at once. No sum is kept across units, which saves registers.
template <typename Type, typename Moves>
__device__ void store_sum_of_two(
    const Terms& all, std::uint32_t units, std::byte* to, bool weighs, Moves& moves) {
  constexpr std::uint32_t kUnitsAtOnce = 2;
  const SomeTerms<2> terms(all, 0);
#pragma unroll 1
  for (std::uint32_t first = Group::thread(); first < units;
       first += kUnitsAtOnce * Group::size()) {
    Vector16 loaded[kUnitsAtOnce][2];
#pragma unroll
    for (std::uint32_t u = 0; u < kUnitsAtOnce; ++u) {
#pragma unroll
      for (std::uint32_t i = 0; i < 2; ++i) {
        if (i < terms.count && first + u * Group::size() < units) {
          loaded[u][i] = moves.load(terms.from[i] + first + u * Group::size());
        }
      }
    }
#pragma unroll
    for (std::uint32_t u = 0; u < kUnitsAtOnce; ++u) {
      if (first + u * Group::size() < units) {
        UnitSum<Type> sum;
#pragma unroll
        for (std::uint32_t i = 0; i < 2; ++i) {
          if (i < terms.count) {
            sum.add_unit(loaded[u][i], weighs, terms.weights[i]);
          }
        }
        moves.store(reinterpret_cast<Vector16*>(to) + first + u * Group::size(), sum.rounded());
      }
    }
  }
}

// Where rows are few. Few terms are those of a team of few ranks: then several units at once keep as many loads on their way.
template <typename Type, typename Moves = Plainly>
__device__ void store_sum(
    const Terms& terms, std::uint32_t units, std::byte* to, bool weighs, Moves&& moves = {}) {
  if (terms.count <= 2) {
    store_sum_of_two<Type>(terms, units, to, weighs, moves);
  } else {
    store_sum_by<Type, Rows::Few, 1, 8>(terms, units, to, weighs, moves);
  }
}

// Any sum, apart: what it keeps in registers costs its caller none.
template <typename Type, Rows kRows>
__device__ __noinline__ void store_other_sum(const Terms& terms,
                                             std::uint32_t units,
                                             std::byte* to,
                                             bool weighs) {
  store_sum_by<Type, kRows, 2, 4>(terms, units, to, weighs);
}

template <Rows kRows>
__device__ void copy_units(const std::byte* from, std::byte* to, std::uint32_t units) {
  for_units_loaded<kRows>(reinterpret_cast<const Vector16*>(from), units,
                          [&](std::uint32_t unit, const Vector16& loaded) {
                            device::store_data(reinterpret_cast<Vector16*>(to) + unit, loaded);
                          });
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
