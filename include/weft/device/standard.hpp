// The standard headers that device code uses. NVRTC has none of them: there CUDA's (libcu++) stand
// in for them.
//
// Constant; no state.
#ifndef WEFT_DEVICE_STANDARD_HPP
#define WEFT_DEVICE_STANDARD_HPP

#ifdef __CUDACC_RTC__
#include <cuda/std/cstddef>
#include <cuda/std/cstdint>
#include <cuda/std/cstring>
#include <cuda/std/type_traits>

// NOLINTNEXTLINE(cert-dcl58-cpp): there is no other
namespace std {
using namespace cuda::std;
}
#else
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>
#endif

#endif  // WEFT_DEVICE_STANDARD_HPP
