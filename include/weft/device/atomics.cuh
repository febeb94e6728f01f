// Atomics on words of 4 or 8 bytes of any PE. Fetching atomics return the old value; the others are
// complete after quiet. All atomics on a word are atomic with respect to each other, whichever PE
// issues them. Peers of the node use native GPU atomics over NVLink; a thread of the target's GPU
// executes those from other nodes. Atomics order no other accesses.
#ifndef WEFT_DEVICE_ATOMICS_CUH
#define WEFT_DEVICE_ATOMICS_CUH

#include <weft/device/cold_call.cuh>
#include <weft/device/peers.cuh>
#include <weft/device/remote.cuh>
#include <weft/device/standard.hpp>
#include <weft/device/word.cuh>

namespace weft::device {

namespace detail {

enum class Fetching : bool { No, Yes };

template <AtomicOp kOp, Fetching kFetching, typename T>
__device__ T atomic(T* word, T operand, T compare, int pe) {
  using Word = CudaWord<sizeof(T)>;
  check(OperationName::Atomic, word, sizeof(T), pe);
  const auto operand_bits = static_cast<Word>(bits_of(operand));
  const auto compare_bits = static_cast<Word>(bits_of(compare));
  Word old{};
  if (const std::int64_t delta = delta_of(pe); delta != kNotMapped) {
    old = update(reinterpret_cast<Word*>(moved(word, delta)), kOp, operand_bits, compare_bits);
  } else {
    const remote::AtomicUpdate update{kOp, sizeof(T), operand_bits, compare_bits};
    old =
        static_cast<Word>(cold_call<&remote::atomic>(word, update, pe, kFetching == Fetching::Yes));
  }
  return bits_as<T>(static_cast<typename WordOf<T>::type>(old));
}

}  // namespace detail

// T is an integer of 4 or 8 bytes; set, fetch and swap also take float and double.

template <typename T>
__device__ T atomic_fetch(const T* word, int pe) {
  return detail::atomic<AtomicOp::Fetch, detail::Fetching::Yes>(const_cast<T*>(word), T{}, T{}, pe);
}

template <typename T>
__device__ void atomic_set(T* word, Value<T> value, int pe) {
  detail::atomic<AtomicOp::Set, detail::Fetching::No>(word, value, T{}, pe);
}

template <typename T>
__device__ T atomic_swap(T* word, Value<T> value, int pe) {
  return detail::atomic<AtomicOp::Set, detail::Fetching::Yes>(word, value, T{}, pe);
}

// Stores `value` if the word equals `expected`; returns the old value.
template <typename T>
__device__ T atomic_compare_swap(T* word, Value<T> expected, Value<T> value, int pe) {
  return detail::atomic<AtomicOp::CompareSwap, detail::Fetching::Yes>(word, value, expected, pe);
}

template <typename T>
__device__ void atomic_add(T* word, Value<T> value, int pe) {
  detail::atomic<AtomicOp::Add, detail::Fetching::No>(word, value, T{}, pe);
}

template <typename T>
__device__ T atomic_fetch_add(T* word, Value<T> value, int pe) {
  return detail::atomic<AtomicOp::Add, detail::Fetching::Yes>(word, value, T{}, pe);
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
__device__ void atomic_and(T* word, Value<T> value, int pe) {
  detail::atomic<AtomicOp::And, detail::Fetching::No>(word, value, T{}, pe);
}

template <typename T>
__device__ T atomic_fetch_and(T* word, Value<T> value, int pe) {
  return detail::atomic<AtomicOp::And, detail::Fetching::Yes>(word, value, T{}, pe);
}

template <typename T>
__device__ void atomic_or(T* word, Value<T> value, int pe) {
  detail::atomic<AtomicOp::Or, detail::Fetching::No>(word, value, T{}, pe);
}

template <typename T>
__device__ T atomic_fetch_or(T* word, Value<T> value, int pe) {
  return detail::atomic<AtomicOp::Or, detail::Fetching::Yes>(word, value, T{}, pe);
}

template <typename T>
__device__ void atomic_xor(T* word, Value<T> value, int pe) {
  detail::atomic<AtomicOp::Xor, detail::Fetching::No>(word, value, T{}, pe);
}

template <typename T>
__device__ T atomic_fetch_xor(T* word, Value<T> value, int pe) {
  return detail::atomic<AtomicOp::Xor, detail::Fetching::Yes>(word, value, T{}, pe);
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_ATOMICS_CUH
