// put_signal: data, and then a word of the target, in one trip. Who sees the word's new value sees the data.
// Signals of two calls to one peer may overtake each other unless a fence stands between.
#ifndef WEFT_DEVICE_SIGNAL_CUH
#define WEFT_DEVICE_SIGNAL_CUH

#include <weft/device/atomics.cuh>
#include <weft/device/rma.cuh>
#include <weft/device/wait.cuh>

#include <cstdint>

namespace weft::device {

// A signal word of the target, 8 bytes, and what happens to it.
struct Signal {
  std::uint64_t* word = nullptr;  // symmetric
  std::uint64_t value = 0;
  SignalOp op = SignalOp::Set;
};

// The word alone; what was put before is not ordered with it (fence first).
inline __device__ void signal(const Signal& signal, int pe) {
  detail::check(OperationName::Signal, signal.word, sizeof(std::uint64_t), pe);
  if (const std::int64_t delta = detail::delta_of(pe); delta != kNotMapped) {
    detail::apply_signal(detail::moved(signal.word, delta), signal.value, signal.op);
  } else {
    remote::signal(signal.word, signal.value, signal.op, pe);
  }
}

template <typename Scope = Thread, typename T>
__device__ void put_signal_nbi(
    T* dest, const T* source, std::size_t count, const Signal& signal, int pe) {
  static_assert(std::is_trivially_copyable<T>::value, "PEs exchange bytes");
  const std::size_t bytes = count * sizeof(T);
  detail::check(OperationName::PutSignal, dest, bytes, pe);
  detail::check(OperationName::PutSignal, signal.word, sizeof(std::uint64_t), pe);
  if (const std::int64_t delta = detail::delta_of(pe); delta != kNotMapped) {
    copy<Scope>(detail::moved(dest, delta), source, bytes);
    Scope::sync();
    if (is_leader<Scope>()) {
      // SYNC device-signal (pairs with include/weft/device/wait.cuh): the whole scope's stores, for who acquires the word.
      fence_release();
      detail::apply_signal(detail::moved(signal.word, delta), signal.value, signal.op);
    }
  } else {
    remote::put_signal<Scope>(dest, source, bytes, {signal.word, signal.value, signal.op}, pe,
                              remote::Wait::No);
  }
}

template <typename Scope = Thread, typename T>
__device__ void put_signal(
    T* dest, const T* source, std::size_t count, const Signal& signal, int pe) {
  static_assert(std::is_trivially_copyable<T>::value, "PEs exchange bytes");
  if (detail::delta_of(pe) != kNotMapped) {
    put_signal_nbi<Scope>(dest, source, count, signal, pe);  // has read the source when it returns
    return;
  }
  const std::size_t bytes = count * sizeof(T);
  detail::check(OperationName::PutSignal, dest, bytes, pe);
  detail::check(OperationName::PutSignal, signal.word, sizeof(std::uint64_t), pe);
  remote::put_signal<Scope>(dest, source, bytes, {signal.word, signal.value, signal.op}, pe,
                            remote::Wait::Yes);
  Scope::sync();
}

// Reads a signal word of this PE; what its put_signal wrote is visible after.
inline __device__ std::uint64_t signal_fetch(const std::uint64_t* word) {
  detail::serve();
  // SYNC device-signal: pairs with put_signal.
  return load_acquire(word);
}

// Waits until `*word` compares to `value`; returns what it saw (in the leader; the others: `value`).
template <typename Scope = Thread>
__device__ std::uint64_t signal_wait_until(const std::uint64_t* word,
                                           Comparison comparison,
                                           std::uint64_t value) {
  return detail::wait_word_in<Scope>(OperationName::WaitUntil, word, comparison, value);
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_SIGNAL_CUH
