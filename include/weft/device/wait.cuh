// Waits for words of this PE's own heap that peers write: wait_until and test, of one word or of
// several. What a peer made visible before it wrote the word is visible after the wait (after test
// if it returns true).
//
// Scope: the leader waits, and the other threads wait for the leader; all threads may use the data
// that arrived. The word is read past all caches. A lost peer aborts the kernel with a record of
// the wait (failure.cuh).
#ifndef WEFT_DEVICE_WAIT_CUH
#define WEFT_DEVICE_WAIT_CUH

#include <weft/device/access.cuh>
#include <weft/device/peers.cuh>
#include <weft/device/spin.cuh>
#include <weft/device/standard.hpp>
#include <weft/device/word.cuh>

namespace weft::device {

// As weft_comparison.
enum class Comparison : int { Eq = 1, Ne = 2, Gt = 3, Ge = 4, Lt = 5, Le = 6 };

template <typename T>
__device__ bool compare(T seen, Comparison comparison, T value) {
  switch (comparison) {
    case Comparison::Eq:
      return seen == value;
    case Comparison::Ne:
      return seen != value;
    case Comparison::Gt:
      return seen > value;
    case Comparison::Ge:
      return seen >= value;
    case Comparison::Lt:
      return seen < value;
    case Comparison::Le:
      return seen <= value;
  }
  return false;
}

namespace detail {

template <typename T>
__device__ T read_word(const T* word) {
  return bits_as<T>(load_relaxed(reinterpret_cast<const typename WordOf<T>::type*>(word)));
}

template <typename T>
__device__ T wait_word(OperationName operation, const T* word, Comparison comparison, T value) {
  T seen{};
  spin_until({FailureKind::None, operation, -1, word, static_cast<std::uint64_t>(bits_of(value)),
              sizeof(T)},
             [&] {
               seen = read_word(word);
               return compare(seen, comparison, value);
             });
  // SYNC device-signal (pairs with include/weft/device/signal.cuh): see the head of this file
  fence_acquire();
  return seen;
}

// As wait_word, by a whole warp, whose lanes apply operations from other nodes together. The first
// lane decides: what other lanes have read of the word may be another value.
template <typename T>
__device__ T
wait_word_by_warp(OperationName operation, const T* word, Comparison comparison, T value) {
  const Failure waiting{
      FailureKind::None, operation, -1, word, static_cast<std::uint64_t>(bits_of(value)),
      sizeof(T)};
  T seen = read_word(word);
  Patience patience;
  while (__shfl_sync(~0U, compare(seen, comparison, value) ? 1 : 0, 0) == 0) {
    drain_by_warp();
    patience.poll(waiting, 64);
    seen = read_word(word);
  }
  // SYNC device-signal (pairs with include/weft/device/signal.cuh): see the head of this file
  fence_acquire();
  return seen;
}

// Returns the value that satisfied the wait, in the scope's first thread.
template <typename Scope, typename T>
__device__ T wait_word_in(OperationName operation, const T* word, Comparison comparison, T value) {
  T seen = value;
  if (serves_by_warp<Scope>()) {
    if (Scope::rank() < 32) {
      seen = wait_word_by_warp(operation, word, comparison, value);
    }
  } else if (is_leader<Scope>()) {
    seen = wait_word(operation, word, comparison, value);
  }
  Scope::sync();
  return seen;
}

}  // namespace detail

// Waits until `*word` compares true with `value`.
template <typename Scope = Thread, typename T>
__device__ void wait_until(const T* word, Comparison comparison, Value<T> value) {
  detail::wait_word_in<Scope>(OperationName::WaitUntil, word, comparison, static_cast<T>(value));
}

// True if `*word` compares true with `value`. Thread scope.
template <typename T>
__device__ bool test(const T* word, Comparison comparison, Value<T> value) {
  detail::serve();
  if (!compare(detail::read_word(word), comparison, value)) {
    return false;
  }
  // SYNC device-signal (pairs with include/weft/device/signal.cuh): see the head of this file
  fence_acquire();
  return true;
}

// ---- For `count` words at `words`; words whose `status` is not 0 are skipped (null: none is).
// Thread scope.

inline constexpr std::size_t kNone = SIZE_MAX;

// The index of a word that compares true with `value`; kNone if there is none.
template <typename T>
__device__ std::size_t test_any(
    const T* words, std::size_t count, const int* status, Comparison comparison, Value<T> value) {
  detail::serve();
  for (std::size_t i = 0; i < count; ++i) {
    if ((status == nullptr || status[i] == 0) &&
        compare(detail::read_word(words + i), comparison, value)) {
      // SYNC device-signal (pairs with include/weft/device/signal.cuh): see the head of this file
      fence_acquire();
      return i;
    }
  }
  return kNone;
}

// True if all compare true with `value`; also true if all are skipped.
template <typename T>
__device__ bool test_all(
    const T* words, std::size_t count, const int* status, Comparison comparison, Value<T> value) {
  detail::serve();
  for (std::size_t i = 0; i < count; ++i) {
    if ((status == nullptr || status[i] == 0) &&
        !compare(detail::read_word(words + i), comparison, value)) {
      return false;
    }
  }
  // SYNC device-signal (pairs with include/weft/device/signal.cuh): see the head of this file
  fence_acquire();
  return true;
}

// Stores the indices of the words that compare true to `indices`; returns their number.
template <typename T>
__device__ std::size_t test_some(const T* words,
                                 std::size_t count,
                                 std::size_t* indices,
                                 const int* status,
                                 Comparison comparison,
                                 Value<T> value) {
  detail::serve();
  std::size_t found = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if ((status == nullptr || status[i] == 0) &&
        compare(detail::read_word(words + i), comparison, value)) {
      indices[found++] = i;
    }
  }
  // SYNC device-signal (pairs with include/weft/device/signal.cuh): see the head of this file
  fence_acquire();
  return found;
}

namespace detail {

// A report of such a wait names the first word.
template <typename T>
__device__ Failure waiting_for_any(const T* words, T value) {
  return {FailureKind::None,
          OperationName::WaitUntil,
          -1,
          words,
          static_cast<std::uint64_t>(bits_of(value)),
          sizeof(T)};
}

inline __device__ bool all_left_out(std::size_t count, const int* status) {
  if (status == nullptr) {
    return count == 0;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (status[i] == 0) {
      return false;
    }
  }
  return true;
}

}  // namespace detail

// Waits until one compares true and returns its index; kNone at once if all are skipped.
template <typename T>
__device__ std::size_t wait_until_any(
    const T* words, std::size_t count, const int* status, Comparison comparison, Value<T> value) {
  std::size_t index = kNone;
  if (!detail::all_left_out(count, status)) {
    detail::spin_until(detail::waiting_for_any(words, static_cast<T>(value)), [&] {
      index = test_any(words, count, status, comparison, value);
      return index != kNone;
    });
  }
  return index;
}

template <typename T>
__device__ void wait_until_all(
    const T* words, std::size_t count, const int* status, Comparison comparison, Value<T> value) {
  detail::spin_until(detail::waiting_for_any(words, static_cast<T>(value)),
                     [&] { return test_all(words, count, status, comparison, value); });
}

// Waits until at least one compares true; 0 at once if all are skipped.
template <typename T>
__device__ std::size_t wait_until_some(const T* words,
                                       std::size_t count,
                                       std::size_t* indices,
                                       const int* status,
                                       Comparison comparison,
                                       Value<T> value) {
  std::size_t found = 0;
  if (!detail::all_left_out(count, status)) {
    detail::spin_until(detail::waiting_for_any(words, static_cast<T>(value)), [&] {
      found = test_some(words, count, indices, status, comparison, value);
      return found != 0;
    });
  }
  return found;
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_WAIT_CUH
