// The types of combine's rows, a unit of 16 bytes at a time: loads to floats (doubles), and rounds back, as
// src/moe/element.hpp does.
//
// Device code: any thread; a UnitSum belongs to one.
#pragma once

#include <weft/moe/number.hpp>

#include <cuda_fp16.h>

#include <type_traits>

#include "src/gpu/moe/exchange.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

struct Bf16 {
  using Stored = std::uint16_t;
  using Sum = float;

  static __device__ Sum load(Stored value) { return weft::moe::from_bfloat16(value); }

  static __device__ Stored store(Sum value) { return weft::moe::bfloat16_of(value); }
};

struct F16 {
  using Stored = std::uint16_t;
  using Sum = float;

  static __device__ Sum load(Stored value) { return __half2float(__ushort_as_half(value)); }

  static __device__ Stored store(Sum value) { return __half_as_ushort(__float2half_rn(value)); }
};

template <typename T>
struct Plain {
  using Stored = T;
  using Sum = T;

  static __device__ Sum load(Stored value) { return value; }

  static __device__ Stored store(Sum value) { return value; }
};

// Products and sums that are not contracted, so that they have the bits of the CPU's.
inline __device__ float multiply(float a, float b) {
  return __fmul_rn(a, b);
}

inline __device__ double multiply(double a, double b) {
  return __dmul_rn(a, b);
}

inline __device__ float add(float a, float b) {
  return __fadd_rn(a, b);
}

inline __device__ double add(double a, double b) {
  return __dadd_rn(a, b);
}

// The sum of one unit of several rows.
template <typename Type>
struct UnitSum {
  using Stored = typename Type::Stored;
  using Sum = typename Type::Sum;

  static constexpr std::uint32_t kValues = kUnit / sizeof(Stored);

  Sum sums[kValues] = {};

  __device__ void add_unit(const Vector16& unit, bool is_weighted, float weight) {
    Stored values[kValues];
    memcpy(values, &unit, sizeof unit);
#pragma unroll
    for (std::uint32_t i = 0; i < kValues; ++i) {
      const Sum value = Type::load(values[i]);
      sums[i] = add(sums[i], is_weighted ? multiply(static_cast<Sum>(weight), value) : value);
    }
  }

  // Bfloat16: two at once by the GPU's instruction, whose NaN is another than ours.
  __device__ Vector16 rounded() const {
    if constexpr (std::is_same_v<Type, Bf16>) {
      std::uint32_t words[4];
      float all = 0;
#pragma unroll
      for (std::uint32_t i = 0; i < 4; ++i) {
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
            : "=r"(words[i])
            : "f"(sums[2 * i + 1]), "f"(sums[2 * i]));
        all += sums[2 * i] + sums[2 * i + 1];
      }
      if (!isnan(all)) {
        return {words[0], words[1], words[2], words[3]};
      }
    }
    Stored values[kValues];
#pragma unroll
    for (std::uint32_t i = 0; i < kValues; ++i) {
      values[i] = Type::store(sums[i]);
    }
    Vector16 unit;
    memcpy(&unit, values, sizeof unit);
    return unit;
  }
};

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
