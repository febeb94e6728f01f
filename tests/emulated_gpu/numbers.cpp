// Conversions of numbers by CUDA's functions for the host, which have the bits of the GPU's
// instructions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <bit>
#include <cstdint>
#include <cstring>

namespace weft_emulated {

// What include/cuda_fp16.h declares; the name of its type is CUDA's too, so it is passed as bits.
extern "C" std::uint16_t weft_emulated_half_of(float value) {
  return std::bit_cast<std::uint16_t>(__float2half_rn(value));
}

extern "C" float weft_emulated_float_of_half(std::uint16_t bits) {
  return __half2float(std::bit_cast<__half>(bits));
}

namespace ptx {

using u16 = std::uint16_t;
using u32 = std::uint32_t;

namespace {

float upper(u32 pair) {
  return std::bit_cast<float>(pair & 0xFFFF0000U);
}

u32 bfloat16_bits(float value) {
  return std::bit_cast<u16>(__float2bfloat16_rn(value));
}

}  // namespace

void add_rn_bf16x2(u32& sum, u32 pair) {
  const float high = upper(sum) + upper(pair);
  const float low = upper(sum << 16U) + upper(pair << 16U);
  sum = bfloat16_bits(high) << 16U | bfloat16_bits(low);
}

void cvt_rn_bf16x2_f32(u32& pair, float high, float low) {
  pair = bfloat16_bits(high) << 16U | bfloat16_bits(low);
}

void cvt_rn_f16x2_e4m3x2(u32& halves, u16 codes) {
  const __half2_raw raw = __nv_cvt_fp8x2_to_halfraw2(codes, __NV_E4M3);
  halves = u32{raw.y} << 16U | raw.x;
}

void cvt_rn_satfinite_e4m3x2_f32(u16& codes, float high, float low) {
  codes = __nv_cvt_float2_to_fp8x2({low, high}, __NV_SATFINITE, __NV_E4M3);
}

void cvt_rn_satfinite_e5m2x2_f32(u16& codes, float high, float low) {
  codes = __nv_cvt_float2_to_fp8x2({low, high}, __NV_SATFINITE, __NV_E5M2);
}

}  // namespace ptx
}  // namespace weft_emulated
