// Updates of a word of 4 or 8 bytes in memory that this GPU maps, on behalf of its own threads, of
// peers over NVLink, or of the inbox. All are native GPU atomics of system scope, so all are atomic
// with respect to each other. They order nothing else.
#ifndef WEFT_DEVICE_WORD_CUH
#define WEFT_DEVICE_WORD_CUH

#include <weft/device/access.cuh>
#include <weft/device/command.hpp>
#include <weft/device/standard.hpp>

namespace weft::device {

// T in a non-deduced context: p(word, 1, pe) works for a word of any type.
template <typename T>
struct As {
  using type = T;
};

template <typename T>
using Value = typename As<T>::type;

// How a signal updates its word.
enum class SignalOp : std::uint32_t { Set = 1, Add = 2 };

namespace detail {

template <typename T>
struct WordOf {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "words have 4 or 8 bytes");
  using type = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
};

template <typename T>
__device__ T bits_as(typename WordOf<T>::type bits) {
  T value;
  memcpy(&value, &bits, sizeof(T));
  return value;
}

template <typename T>
__device__ typename WordOf<T>::type bits_of(T value) {
  typename WordOf<T>::type bits;
  memcpy(&bits, &value, sizeof(T));
  return bits;
}

inline __device__ void add_relaxed(std::uint64_t* word, std::uint64_t value) {
  asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

// The word types that CUDA's atomic functions take.
template <std::size_t kBytes>
using CudaWord = std::conditional_t<kBytes == 4, unsigned int, unsigned long long>;

// Returns the old value.
template <typename Word>
__device__ Word update(Word* word, AtomicOp op, Word operand, Word compare) {
  switch (op) {
    case AtomicOp::Set:
      return atomicExch_system(word, operand);
    case AtomicOp::Add:
      return atomicAdd_system(word, operand);
    case AtomicOp::And:
      return atomicAnd_system(word, operand);
    case AtomicOp::Or:
      return atomicOr_system(word, operand);
    case AtomicOp::Xor:
      return atomicXor_system(word, operand);
    case AtomicOp::CompareSwap:
      return atomicCAS_system(word, compare, operand);
    case AtomicOp::Fetch:
      return atomicOr_system(word, Word{0});
  }
  return Word{};
}

inline __device__ void apply_signal(std::uint64_t* word, std::uint64_t value, SignalOp op) {
  if (op == SignalOp::Set) {
    store_relaxed(word, value);
  } else {
    add_relaxed(word, value);
  }
}

}  // namespace detail
}  // namespace weft::device

#endif  // WEFT_DEVICE_WORD_CUH
