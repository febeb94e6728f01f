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

// Whether there may be a NaN among pairs of bfloat16s: their sum is one then, and if there are infinities of both signs.
class SeenNan {
 public:
  __device__ void look_at(std::uint32_t pair) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm("add.rn.bf16x2 %0, %0, %1;" : "+r"(sum_) : "r"(pair));
#else
    sum_ = is_nan(pair) || is_nan(pair << 16U) ? pair : sum_;
#endif
  }

  [[nodiscard]] __device__ bool maybe() const { return is_nan(sum_) || is_nan(sum_ << 16U); }

 private:
  // In the upper half.
  static __device__ bool is_nan(std::uint32_t pair) { return (pair & 0x7FFF0000U) > 0x7F800000U; }

  std::uint32_t sum_ = 0;
};

// The sum of one unit of several rows.
template <typename Type>
struct UnitSum {
  using Stored = typename Type::Stored;
  using Sum = typename Type::Sum;

  static constexpr std::uint32_t kValues = kUnit / sizeof(Stored);

  Sum sums[kValues] = {};

  __device__ void add_unit(const Vector16& unit, bool is_weighted, float weight) {
    if constexpr (std::is_same_v<Type, Bf16>) {
      add_words({unit.x, unit.y, unit.z, unit.w}, is_weighted, weight);
      return;
    }
    Stored values[kValues];
    memcpy(values, &unit, sizeof unit);
#pragma unroll
    for (std::uint32_t i = 0; i < kValues; ++i) {
      const Sum value = Type::load(values[i]);
      sums[i] = add(sums[i], is_weighted ? multiply(static_cast<Sum>(weight), value) : value);
    }
  }

  // Sums that were not rounded travel as they are in registers, in so many units.
  static constexpr std::uint32_t kUnitsOfSums = kValues * sizeof(Sum) / kUnit;

  __device__ void add_sums(const Vector16* from) {
    Sum values[kValues];
#pragma unroll
    for (std::uint32_t i = 0; i < kUnitsOfSums; ++i) {
      const Vector16 unit = device::load_shared(from + i);
      memcpy(&values[i * kValues / kUnitsOfSums], &unit, sizeof unit);
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kValues; ++i) {
      sums[i] = add(sums[i], values[i]);
    }
  }

  __device__ void store_sums(Vector16* to) const {
#pragma unroll
    for (std::uint32_t i = 0; i < kUnitsOfSums; ++i) {
      Vector16 unit;
      memcpy(&unit, &sums[i * kValues / kUnitsOfSums], sizeof unit);
      device::store_data(to + i, unit);
    }
  }

  // Bfloat16, two at once by the GPU's instruction, whose NaN is another than ours: `seen` hears of it.
  __device__ Vector16 rounded_numbers(SeenNan& seen) const {
    static_assert(std::is_same_v<Type, Bf16>);
    std::uint32_t words[4];
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;"
          : "=r"(words[i])
          : "f"(sums[2 * i + 1]), "f"(sums[2 * i]));
      seen.look_at(words[i]);
    }
    return {words[0], words[1], words[2], words[3]};
  }

  __device__ Vector16 rounded() const {
    if constexpr (std::is_same_v<Type, Bf16>) {
      SeenNan seen;
      const Vector16 numbers = rounded_numbers(seen);
      if (!seen.maybe()) {
        return numbers;
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

 private:
  // Bfloat16s are the upper halves of floats.
  __device__ void add_words(const std::uint32_t (&words)[4], bool is_weighted, float weight) {
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      const float low = __uint_as_float(words[i] << 16U);
      const float high = __uint_as_float(words[i] & 0xFFFF0000U);
      sums[2 * i] = add(sums[2 * i], is_weighted ? multiply(weight, low) : low);
      sums[2 * i + 1] = add(sums[2 * i + 1], is_weighted ? multiply(weight, high) : high);
    }
  }
};

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
