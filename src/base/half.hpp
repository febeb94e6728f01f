// IEEE 754 binary16 (CUDA's `half`) to float and back, on raw bits: g++ has no _Float16 in C++ for
// x86-64 before version 13.
//
// Pure functions. They expect the default rounding mode, to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace weft {

// Exact. A NaN keeps its payload.
[[nodiscard]] constexpr float half_to_float(std::uint16_t half) noexcept {
  constexpr std::uint32_t kRebias = 127 - 15;
  const std::uint32_t sign = (half & 0x8000U) << 16U;
  const std::uint32_t exponent = half >> 10U & 0x1FU;
  const std::uint32_t fraction = half & 0x3FFU;
  if (exponent == 0) {  // zero, or subnormal: multiples of 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t wide = exponent == 0x1FU ? 0xFFU : exponent + kRebias;
  return std::bit_cast<float>(sign | wide << 23U | fraction << 13U);
}

// The nearest half, of two that are equally near the even one; infinity from 65520 on. A NaN stays
// one, and becomes quiet.
[[nodiscard]] constexpr std::uint16_t half_from_float(float value) noexcept {
  constexpr std::uint32_t kInfinity = 0x7F80'0000;
  constexpr std::uint32_t kOverflow = std::bit_cast<std::uint32_t>(65520.0F);
  constexpr std::uint32_t kLeastNormal = std::bit_cast<std::uint32_t>(0x1p-14F);
  constexpr std::uint32_t kRebias = (127U - 15U) << 23U;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16U & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFF'FFFFU;
  if (magnitude > kInfinity) {
    return static_cast<std::uint16_t>(sign | 0x7E00U | (magnitude >> 13U & 0x3FFU));
  }
  if (magnitude >= kOverflow) {
    return static_cast<std::uint16_t>(sign | 0x7C00U);
  }
  if (magnitude < kLeastNormal) {
    // The last bit of a float from 0.5 to 1 counts 2^-24, as that of a subnormal half does: so this
    // addition rounds as the conversion must.
    const float rounded = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(
        sign | (std::bit_cast<std::uint32_t>(rounded) - std::bit_cast<std::uint32_t>(0.5F)));
  }
  const std::uint32_t is_odd = magnitude >> 13U & 1U;
  return static_cast<std::uint16_t>(sign | (magnitude - kRebias + 0xFFFU + is_odd) >> 13U);
}

}  // namespace weft
