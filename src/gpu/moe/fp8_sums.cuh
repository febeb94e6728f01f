// Sums that travel as fp8 (weft/moe/row.hpp Fp8Row): made on the experts' rank, added up at the source. Bit for bit what
// src/moe/element.hpp does.
//
// Device code: all threads of a group together. Terms lie in shared memory, behind the group's barrier. A thread has 16 values;
// 8 neighbours share a scale.
#pragma once

#include <weft/moe/number.hpp>
#include <weft/moe/quantize.hpp>
#include <weft/moe/row.hpp>

#include "src/gpu/moe/quantize.cuh"
#include "src/gpu/moe/sums.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

// How sums travel: rounded to the type of the output, or as Fp8Row.
enum class Travels { Rounded, Fp8 };

inline constexpr std::uint32_t kCodes = kUnit;  // of a thread
inline constexpr std::uint32_t kSharersOfScale = weft::moe::kScaleBlock / kCodes;

// 16 values of the output's type.
template <typename Type>
struct SixteenSums {
  static constexpr std::uint32_t kUnits = kCodes / UnitSum<Type>::kValues;

  UnitSum<Type> units[kUnits];

  __device__ void add_row(const std::byte* row, std::uint32_t index, bool weighs, float weight) {
    const auto* from = reinterpret_cast<const Vector16*>(row) + index * kUnits;
#pragma unroll
    for (std::uint32_t unit = 0; unit < kUnits; ++unit) {
      units[unit].add_unit(device::load_shared(from + unit), weighs, weight);
    }
  }

  __device__ void add_sums(const std::byte* row, std::uint32_t index) {
    constexpr std::uint32_t kUnitsOfSums = UnitSum<Type>::kUnitsOfSums;
    const auto* from = reinterpret_cast<const Vector16*>(row) + index * kUnits * kUnitsOfSums;
#pragma unroll
    for (std::uint32_t unit = 0; unit < kUnits; ++unit) {
      units[unit].add_sums(from + unit * kUnitsOfSums);
    }
  }

  __device__ float& operator[](std::uint32_t value) {
    return units[value / UnitSum<Type>::kValues].sums[value % UnitSum<Type>::kValues];
  }
};

// A row of sums at `to`. add(sums, i): adds the terms of values 16 i to 16 i + 15. All threads of a warp make the same turns, because
// neighbours compare.
template <typename Type, typename Add>
__device__ void store_as_fp8(std::uint32_t hidden, std::byte* to, Add&& add) {
  namespace wm = weft::moe;
  const std::uint32_t count = hidden / kCodes;
#pragma unroll 1
  for (std::uint32_t i = Group::thread(); i / kWarp * kWarp < count; i += Group::size()) {
    SixteenSums<Type> sums{};
    if (i < count) {
      add(sums, i);
    }
    float values[kCodes];
#pragma unroll
    for (std::uint32_t value = 0; value < kCodes; ++value) {
      values[value] = sums[value];
    }
    float most = wm::largest_of(values, kCodes);
#pragma unroll
    for (int distance = 1; distance < static_cast<int>(kSharersOfScale); distance *= 2) {
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, distance));
    }
    const float scale = wm::scale_for(most, wm::reach_of(wm::e4m3_format()));
    const float inverse = wm::divide(1.0F, scale);
#pragma unroll
    for (std::uint32_t value = 0; value < kCodes; ++value) {
      values[value] = wm::multiply(values[value], inverse);
    }
    if (i < count) {
      device::store_data(at<Vector16>(to, 0) + i, fp8_codes(true, values));
      if (i % kSharersOfScale == 0) {
        at<float>(to, wm::Fp8Row{hidden}.scales_at())[i / kSharersOfScale] = scale;
      }
    }
  }
}

// The group's terms, added in their order, as a row at `to`.
template <typename Type>
__device__ void store_fp8_sum(const Terms& terms,
                              std::uint32_t hidden,
                              std::byte* to,
                              bool weighs) {
  store_as_fp8<Type>(hidden, to, [&](SixteenSums<Type>& sums, std::uint32_t i) {
    for (std::uint32_t term = 0; term < terms.count; ++term) {
      sums.add_row(terms.from[term], i, weighs, terms.weights[term]);
    }
  });
}

// The numbers of four codes of e4m3. Compute capability 8.9 and later have an instruction for it.
inline __device__ void widen_fp8(std::uint32_t codes, float (&values)[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    values[i] = weft::moe::decode(weft::moe::e4m3_format(), codes >> i * 8 & 0xffU);
  }
#else
#pragma unroll
  for (std::uint32_t pair = 0; pair < 2; ++pair) {
    std::uint32_t halves = 0;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;"
        : "=r"(halves)
        : "h"(static_cast<std::uint16_t>(codes >> pair * 16)));
    values[2 * pair] = __half2float(__ushort_as_half(static_cast<std::uint16_t>(halves)));
    values[2 * pair + 1] =
        __half2float(__ushort_as_half(static_cast<std::uint16_t>(halves >> 16U)));
  }
#endif
}

// The rows of the group's terms, added in their order, at `to`.
template <typename Type>
__device__ void store_sum_of_fp8(const Terms& terms, std::uint32_t hidden, std::byte* to) {
  const std::uint32_t count = hidden / kCodes;
  const std::size_t scales_at = weft::moe::Fp8Row{hidden}.scales_at();
#pragma unroll 1
  for (std::uint32_t i = Group::thread(); i < count; i += Group::size()) {
    SixteenSums<Type> sums{};
    for (std::uint32_t term = 0; term < terms.count; ++term) {
      const std::byte* row = terms.from[term];
      const Vector16 codes = device::load_shared(reinterpret_cast<const Vector16*>(row) + i);
      const auto* scales = reinterpret_cast<const std::uint32_t*>(row + scales_at);
      const float scale = __uint_as_float(device::load_relaxed(scales + i / kSharersOfScale));
      std::uint32_t words[4];
      memcpy(words, &codes, sizeof codes);
#pragma unroll
      for (std::uint32_t word = 0; word < 4; ++word) {
        float values[4];
        widen_fp8(words[word], values);
#pragma unroll
        for (std::uint32_t value = 0; value < 4; ++value) {
          float& sum = sums[4 * word + value];
          sum = add(sum, multiply(values[value], scale));
        }
      }
    }
    auto* units = reinterpret_cast<Vector16*>(to) + i * SixteenSums<Type>::kUnits;
#pragma unroll
    for (std::uint32_t unit = 0; unit < SixteenSums<Type>::kUnits; ++unit) {
      device::store_data(units + unit, sums.units[unit].rounded());
    }
  }
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
