// Types as words: the unsigned word of a size, the integer that stands for all integers of its size
// and sign, and NVSHMEM's comparisons as Weft's.
//
// Constant; no state.
#ifndef WEFT_NVSHMEM_WORDS_CUH
#define WEFT_NVSHMEM_WORDS_CUH

#include <weft/device/standard.hpp>
#include <weft/device/wait.cuh>

#include <weft_nvshmem/types.h>

namespace weft_nvshmem {

template <std::size_t kBytes>
struct SizedBits;

template <>
struct SizedBits<1> {
  using Unsigned = std::uint8_t;
  using Signed = std::int8_t;
};

template <>
struct SizedBits<2> {
  using Unsigned = std::uint16_t;
  using Signed = std::int16_t;
};

template <>
struct SizedBits<4> {
  using Unsigned = std::uint32_t;
  using Signed = std::int32_t;
};

template <>
struct SizedBits<8> {
  using Unsigned = std::uint64_t;
  using Signed = std::int64_t;
};

template <std::size_t kBytes>
using BitsOf = typename SizedBits<kBytes>::Unsigned;

// int and long and int64_t are two types, not three; what is no integer stands for itself.
template <typename T, bool kIsInteger = std::is_integral<T>::value>
struct CanonicalOf {
  using type = T;
};

template <typename T>
struct CanonicalOf<T, true> {
  using type = std::conditional_t<std::is_signed<T>::value,
                                  typename SizedBits<sizeof(T)>::Signed,
                                  typename SizedBits<sizeof(T)>::Unsigned>;
};

template <typename T>
using Canonical = typename CanonicalOf<T>::type;

// The same without the sign.
template <typename T>
using Bits = std::conditional_t<std::is_integral<T>::value, BitsOf<sizeof(T)>, T>;

template <typename To, typename From>
__device__ To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From), "the same bits");
  To bits;
  memcpy(&bits, &value, sizeof(To));
  return bits;
}

inline __device__ weft::device::Comparison comparison_of(int cmp) {
  using weft::device::Comparison;
  switch (cmp) {
    case NVSHMEM_CMP_EQ:
      return Comparison::Eq;
    case NVSHMEM_CMP_NE:
      return Comparison::Ne;
    case NVSHMEM_CMP_GT:
      return Comparison::Gt;
    case NVSHMEM_CMP_LE:
      return Comparison::Le;
    case NVSHMEM_CMP_LT:
      return Comparison::Lt;
    default:
      return Comparison::Ge;
  }
}

}  // namespace weft_nvshmem

#endif  // WEFT_NVSHMEM_WORDS_CUH
