// The operations of reductions: weft::device's, and for half and __nv_bfloat16 CUDA's intrinsics.
// Their operators are not there with -D__CUDA_NO_HALF_OPERATORS__ and its like, with which
// PyTorch's extensions are compiled.
//
// Constant; no state.
#ifndef WEFT_NVSHMEM_REDUCE_OPERATIONS_CUH
#define WEFT_NVSHMEM_REDUCE_OPERATIONS_CUH

#include <weft/device/reduction.cuh>
#include <weft/device/standard.hpp>

#include <weft_nvshmem/types.h>

namespace weft_nvshmem {

template <typename T>
inline constexpr bool kIsHalf =
    std::is_same<T, __half>::value || std::is_same<T, __nv_bfloat16>::value;

struct Sum {
  template <typename T>
  static __device__ T apply(T a, T b) {
    if constexpr (kIsHalf<T>) {
      return __hadd(a, b);
    } else {
      return weft::device::Sum::apply(a, b);
    }
  }
};

struct Prod {
  template <typename T>
  static __device__ T apply(T a, T b) {
    if constexpr (kIsHalf<T>) {
      return __hmul(a, b);
    } else {
      return weft::device::Prod::apply(a, b);
    }
  }
};

struct Min {
  template <typename T>
  static __device__ T apply(T a, T b) {
    if constexpr (kIsHalf<T>) {
      return __hlt(b, a) ? b : a;
    } else {
      return weft::device::Min::apply(a, b);
    }
  }
};

struct Max {
  template <typename T>
  static __device__ T apply(T a, T b) {
    if constexpr (kIsHalf<T>) {
      return __hlt(a, b) ? b : a;
    } else {
      return weft::device::Max::apply(a, b);
    }
  }
};

using weft::device::And;
using weft::device::Or;
using weft::device::Xor;

}  // namespace weft_nvshmem

#endif  // WEFT_NVSHMEM_REDUCE_OPERATIONS_CUH
