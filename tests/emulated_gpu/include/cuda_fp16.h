// The functions of CUDA's half numbers that Weft's kernels call, by CUDA's own for the host
// (numbers.cpp).
#pragma once

#include <cstdint>

extern "C" std::uint16_t weft_emulated_half_of(float value);
extern "C" float weft_emulated_float_of_half(std::uint16_t bits);

struct __half {
  std::uint16_t bits;
};

inline float __half2float(__half value) {
  return weft_emulated_float_of_half(value.bits);
}

inline __half __float2half_rn(float value) {
  return {weft_emulated_half_of(value)};
}

inline __half __float2half(float value) {
  return __float2half_rn(value);
}

inline __half __ushort_as_half(unsigned short bits) {
  return {bits};
}

inline unsigned short __half_as_ushort(__half value) {
  return value.bits;
}
