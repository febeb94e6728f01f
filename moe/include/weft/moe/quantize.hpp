// Rows of float to fp8 with one scale for each block of 128 (float, or ue8m0 rounded up), and to
// nvfp4 (e2m1 pairs, one e4m3 scale for each 16, one float scale for the row). value ~ code x scale
// (x the row's scale).
//
// A block whose largest magnitude is below 2^-60 has the scale 1, so it becomes zeros. NaN stays
// NaN in fp8. Pure functions, bit-equal on host and device.
#ifndef WEFT_MOE_QUANTIZE_HPP
#define WEFT_MOE_QUANTIZE_HPP

#include <weft/device/host_device.hpp>
#include <weft/moe/number.hpp>

#include <cstdint>

namespace weft {
namespace moe {

constexpr std::int32_t kScaleBlock = 128;  // values for each scale of fp8
constexpr std::int32_t kNvfp4Block = 16;

// NaN does not count. By bits, whose order is that of magnitudes: a vectorizer may not reorder
// comparisons of float. A GPU has an instruction for it.
WEFT_HOST_DEVICE inline float largest_of(const float* values, std::int32_t count) {
#if defined(__CUDA_ARCH__)
  float most = 0;
#pragma unroll
  for (std::int32_t i = 0; i < count; ++i) {
    most = fmaxf(most, fabsf(values[i]));
  }
  return most;
#else
  std::int32_t largest = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    const auto magnitude = static_cast<std::int32_t>(bits_of(values[i]) & 0x7FFFFFFF);
    const std::int32_t number = magnitude > 0x7F800000 ? 0 : magnitude;
    largest = number > largest ? number : largest;
  }
  return float_of(static_cast<std::uint32_t>(largest));
#endif
}

// The scale that brings `largest` to `reach`, the largest number of the format.
WEFT_HOST_DEVICE inline float scale_for(float largest, float reach) {
  return largest < power_of_two(-60) ? 1.0F : divide(largest, reach);
}

WEFT_HOST_DEVICE inline float reach_of(const SmallFormat& format) {
  return decode(format, format.largest);
}

// Quantises one block with a given scale.
WEFT_HOST_DEVICE inline void encode_block(const SmallFormat& format,
                                          const float* values,
                                          std::int32_t count,
                                          float scale,
                                          std::uint8_t* codes) {
  const float inverse = divide(1.0F, scale);
  for (std::int32_t i = 0; i < count; ++i) {
    codes[i] = static_cast<std::uint8_t>(encode(format, multiply(values[i], inverse)));
  }
}

// One block of up to 128 values; returns its scale.
WEFT_HOST_DEVICE inline float quantize_fp8(const SmallFormat& format,
                                           const float* values,
                                           std::int32_t count,
                                           std::uint8_t* codes) {
  const float scale = scale_for(largest_of(values, count), reach_of(format));
  encode_block(format, values, count, scale, codes);
  return scale;
}

// The same with a power of two; returns the code of the scale.
WEFT_HOST_DEVICE inline std::uint8_t quantize_fp8_ue8m0(const SmallFormat& format,
                                                        const float* values,
                                                        std::int32_t count,
                                                        std::uint8_t* codes) {
  const std::uint8_t scale = ue8m0_of(scale_for(largest_of(values, count), reach_of(format)));
  encode_block(format, values, count, from_ue8m0(scale), codes);
  return scale;
}

// The scale of a whole row of nvfp4: with it the scales of its blocks reach up to the largest e4m3.
WEFT_HOST_DEVICE inline float nvfp4_row_scale(const float* values, std::int32_t count) {
  return scale_for(largest_of(values, count), multiply(6.0F, 448.0F));
}

// One block of 16 values to 8 bytes, the first value of each pair in the low half; returns the e4m3
// code of its scale.
WEFT_HOST_DEVICE inline std::uint8_t quantize_nvfp4(const float* values,
                                                    float row_scale,
                                                    std::uint8_t* pairs) {
  const float wanted = divide(divide(largest_of(values, kNvfp4Block), 6.0F), row_scale);
  const auto code = static_cast<std::uint8_t>(encode(e4m3_format(), wanted));
  const float scale = multiply(decode(e4m3_format(), code), row_scale);
  const float inverse = scale > 0 ? divide(1.0F, scale) : 0.0F;
  for (std::int32_t i = 0; i < kNvfp4Block; i += 2) {
    const std::uint32_t low = encode(e2m1_format(), multiply(values[i], inverse));
    const std::uint32_t high = encode(e2m1_format(), multiply(values[i + 1], inverse));
    pairs[i / 2] = static_cast<std::uint8_t>(low | high << 4);
  }
  return code;
}

}  // namespace moe
}  // namespace weft

#endif  // WEFT_MOE_QUANTIZE_HPP
