// Atomics on words of 4 or 8 bytes of any PE: fetching ones return the old value, the others are complete
// after quiet. Every atomic on a word is atomic with every other on it, whoever does it and from wherever:
// peers of the node use their GPU's own instructions over NVLink, and those of other nodes are carried out
// by a thread of the target's GPU. They order nothing else.
#ifndef WEFT_DEVICE_ATOMICS_CUH
#define WEFT_DEVICE_ATOMICS_CUH

#include <weft/device/peers.cuh>
#include <weft/device/remote.cuh>
#include <weft/device/wait.cuh>

#include <type_traits>

namespace weft::device {

namespace detail {

using Word64 = unsigned long long;  // what CUDA's functions take

inline __device__ void add_relaxed(std::uint64_t* word, std::uint64_t value) {
  asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

template <typename T>
struct CudaWord {
  using type = std::conditional_t<sizeof(T) == 4, unsigned int, Word64>;
};

// On a word that is mapped here; returns the old value.
template <typename Word>
__device__ Word update(Word* word, AtomicCode code, Word operand, Word compare) {
  switch (code) {
    case AtomicCode::Set:
      return atomicExch_system(word, operand);
    case AtomicCode::Add:
      return atomicAdd_system(word, operand);
    case AtomicCode::And:
      return atomicAnd_system(word, operand);
    case AtomicCode::Or:
      return atomicOr_system(word, operand);
    case AtomicCode::Xor:
      return atomicXor_system(word, operand);
    case AtomicCode::CompareSwap:
      return atomicCAS_system(word, compare, operand);
    case AtomicCode::Fetch:
      return static_cast<Word>(load_relaxed(
          reinterpret_cast<
              const std::conditional_t<sizeof(Word) == 4, std::uint32_t, std::uint64_t>*>(word)));
  }
  return Word{};
}

enum class Fetching : bool { No, Yes };

template <AtomicCode kCode, Fetching kFetching, typename T>
__device__ T atomic(T* word, T operand, T compare, int pe) {
  using Word = typename CudaWord<T>::type;
  check(OperationName::Atomic, word, sizeof(T), pe);
  const auto operand_bits = static_cast<Word>(bits_of(operand));
  const auto compare_bits = static_cast<Word>(bits_of(compare));
  Word old{};
  if (const std::int64_t delta = delta_of(pe); delta != kNotMapped) {
    old = update(reinterpret_cast<Word*>(moved(word, delta)), kCode, operand_bits, compare_bits);
  } else {
    old = static_cast<Word>(remote::atomic(word, {kCode, sizeof(T), operand_bits, compare_bits}, pe,
                                           kFetching == Fetching::Yes));
  }
  return bits_as<T>(static_cast<typename WordOf<T>::type>(old));
}

}  // namespace detail

// T is an integer of 4 or 8 bytes; set, fetch and swap also take float and double.

template <typename T>
__device__ T atomic_fetch(const T* word, int pe) {
  return detail::atomic<AtomicCode::Fetch, detail::Fetching::Yes>(const_cast<T*>(word), T{}, T{},
                                                                  pe);
}

template <typename T>
__device__ void atomic_set(T* word, T value, int pe) {
  detail::atomic<AtomicCode::Set, detail::Fetching::No>(word, value, T{}, pe);
}

template <typename T>
__device__ T atomic_swap(T* word, T value, int pe) {
  return detail::atomic<AtomicCode::Set, detail::Fetching::Yes>(word, value, T{}, pe);
}

// Stores `value` if the word is `expected`; returns what it was.
template <typename T>
__device__ T atomic_compare_swap(T* word, T expected, T value, int pe) {
  return detail::atomic<AtomicCode::CompareSwap, detail::Fetching::Yes>(word, value, expected, pe);
}

template <typename T>
__device__ void atomic_add(T* word, T value, int pe) {
  detail::atomic<AtomicCode::Add, detail::Fetching::No>(word, value, T{}, pe);
}

template <typename T>
__device__ T atomic_fetch_add(T* word, T value, int pe) {
  return detail::atomic<AtomicCode::Add, detail::Fetching::Yes>(word, value, T{}, pe);
}

template <typename T>
__device__ void atomic_inc(T* word, int pe) {
  atomic_add(word, T{1}, pe);
}

template <typename T>
__device__ T atomic_fetch_inc(T* word, int pe) {
  return atomic_fetch_add(word, T{1}, pe);
}

template <typename T>
__device__ void atomic_and(T* word, T value, int pe) {
  detail::atomic<AtomicCode::And, detail::Fetching::No>(word, value, T{}, pe);
}

template <typename T>
__device__ T atomic_fetch_and(T* word, T value, int pe) {
  return detail::atomic<AtomicCode::And, detail::Fetching::Yes>(word, value, T{}, pe);
}

template <typename T>
__device__ void atomic_or(T* word, T value, int pe) {
  detail::atomic<AtomicCode::Or, detail::Fetching::No>(word, value, T{}, pe);
}

template <typename T>
__device__ T atomic_fetch_or(T* word, T value, int pe) {
  return detail::atomic<AtomicCode::Or, detail::Fetching::Yes>(word, value, T{}, pe);
}

template <typename T>
__device__ void atomic_xor(T* word, T value, int pe) {
  detail::atomic<AtomicCode::Xor, detail::Fetching::No>(word, value, T{}, pe);
}

template <typename T>
__device__ T atomic_fetch_xor(T* word, T value, int pe) {
  return detail::atomic<AtomicCode::Xor, detail::Fetching::Yes>(word, value, T{}, pe);
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_ATOMICS_CUH
