// The small floating-point formats: bfloat16, half, fp8 (e4m3, e5m2), fp4 (e2m1), and ue8m0 for
// scales, to and from float. Encoding rounds to nearest, ties to even. fp8 and fp4 saturate,
// infinities too; half and bfloat16 overflow to infinity. The formats are those of the OCP
// specifications for 8-bit floating point and for microscaling formats.
//
// Pure functions, bit-equal on host and device.
#ifndef WEFT_MOE_NUMBER_HPP
#define WEFT_MOE_NUMBER_HPP

#include <weft/device/host_device.hpp>

#include <cstdint>
#include <cstring>

namespace weft {
namespace moe {

WEFT_HOST_DEVICE inline std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

WEFT_HOST_DEVICE inline float float_of(std::uint32_t bits) {
  float value = 0;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Products, sums and quotients that no compiler contracts or approximates.
WEFT_HOST_DEVICE inline float multiply(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

WEFT_HOST_DEVICE inline float add(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}

WEFT_HOST_DEVICE inline float divide(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}

// A format with a sign bit, `mantissa` bits of fraction, and `least` as the exponent of its
// smallest normal number. `largest` is the code of the largest finite number, `overflow` the code
// of what is larger, `nan` that of NaN.
struct SmallFormat {
  std::uint32_t mantissa;
  std::int32_t least;
  std::uint32_t largest;
  std::uint32_t overflow;
  std::uint32_t infinity;  // its code; 0 in formats without it
  std::uint32_t nan;
  std::uint32_t sign;  // its bit
};

WEFT_HOST_DEVICE constexpr SmallFormat e4m3_format() {
  return {3, -6, 0x7E, 0x7E, 0, 0x7F, 0x80};
}

WEFT_HOST_DEVICE constexpr SmallFormat e5m2_format() {
  return {2, -14, 0x7B, 0x7B, 0x7C, 0x7E, 0x80};
}

// e2m1 has no NaN: it becomes the largest number.
WEFT_HOST_DEVICE constexpr SmallFormat e2m1_format() {
  return {1, 0, 0x7, 0x7, 0, 0x7, 0x8};
}

WEFT_HOST_DEVICE constexpr SmallFormat half_format() {
  return {10, -14, 0x7BFF, 0x7C00, 0x7C00, 0x7E00, 0x8000};
}

// 2 to the power of `exponent`, from -126 to 127.
WEFT_HOST_DEVICE inline float power_of_two(std::int32_t exponent) {
  return float_of(static_cast<std::uint32_t>(exponent + 127) << 23);
}

// Choices between values and no branches, so that loops over it are vectorized.
WEFT_HOST_DEVICE inline std::uint32_t encode(const SmallFormat& format, float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = (bits >> 31) != 0 ? format.sign : 0;
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  const std::int32_t exponent = static_cast<std::int32_t>(magnitude >> 23) - 127;
  const std::int32_t normal = exponent < format.least ? format.least : exponent;
  // No format here has 2^120. With at most that the scaling below stays exact.
  const std::int32_t step = normal > 120 ? 120 : normal;
  // In units of the last place: up to 2^(mantissa + 1). Adding 2^23 leaves no fraction, and rounds
  // to even.
  const float units = multiply(float_of(magnitude),
                               power_of_two(static_cast<std::int32_t>(format.mantissa) - step));
  const std::uint32_t whole = bits_of(add(units, 8388608.0F)) & 0x7FFFFF;
  const std::uint32_t code =
      (static_cast<std::uint32_t>(step - format.least) << format.mantissa) + whole;
  const std::uint32_t finite = code > format.largest ? format.overflow : code;
  return sign | (magnitude > 0x7F800000 ? format.nan : finite);
}

// Without branches, as encode.
WEFT_HOST_DEVICE inline float decode(const SmallFormat& format, std::uint32_t code) {
  const std::uint32_t sign = (code & format.sign) != 0 ? 0x80000000U : 0U;
  const std::uint32_t magnitude = code & (format.sign - 1);
  const std::uint32_t field = magnitude >> format.mantissa;
  const std::uint32_t is_normal = field == 0 ? 0 : 1;
  const std::uint32_t fraction = magnitude & ((1U << format.mantissa) - 1);
  const std::uint32_t whole = fraction + (is_normal << format.mantissa);
  const std::int32_t step = format.least + static_cast<std::int32_t>(field - is_normal);
  const float value = multiply(static_cast<float>(static_cast<std::int32_t>(whole)),
                               power_of_two(step - static_cast<std::int32_t>(format.mantissa)));
  const std::uint32_t beyond = magnitude == format.infinity ? 0x7F800000U : 0x7FC00000U;
  return float_of(sign | (magnitude > format.largest ? beyond : bits_of(value)));
}

WEFT_HOST_DEVICE inline std::uint16_t bfloat16_of(float value) {
  const std::uint32_t bits = bits_of(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) {
    return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  }
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

WEFT_HOST_DEVICE inline float from_bfloat16(std::uint16_t code) {
  return float_of(static_cast<std::uint32_t>(code) << 16);
}

// ue8m0: powers of two from 2^-127 to 2^127. The least one that is not below `value`, which is
// positive.
WEFT_HOST_DEVICE inline std::uint8_t ue8m0_of(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t code = (bits >> 23) + ((bits & 0x7FFFFF) != 0 ? 1 : 0);
  return static_cast<std::uint8_t>(code > 254 ? 254 : code);
}

WEFT_HOST_DEVICE inline float from_ue8m0(std::uint8_t code) {
  return code == 0 ? float_of(0x00400000U) : float_of(static_cast<std::uint32_t>(code) << 23);
}

}  // namespace moe
}  // namespace weft

#endif  // WEFT_MOE_NUMBER_HPP
