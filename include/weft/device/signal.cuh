// put_signal: data, then a word of the target, in one trip. A PE that observes the word's new value
// observes the data. Signals of two calls to the same peer may be reordered unless a fence
// separates them.
#ifndef WEFT_DEVICE_SIGNAL_CUH
#define WEFT_DEVICE_SIGNAL_CUH

#include <weft/device/atomics.cuh>
#include <weft/device/cold_call.cuh>
#include <weft/device/rma.cuh>
#include <weft/device/standard.hpp>
#include <weft/device/wait.cuh>

namespace weft::device {

// A signal word of the target, 8 bytes, and the update to apply to it.
struct Signal {
  std::uint64_t* word = nullptr;  // symmetric
  std::uint64_t value = 0;
  SignalOp op = SignalOp::Set;
};

// Updates the word alone; not ordered with earlier puts (call fence first).
inline __device__ void signal(const Signal& signal, int pe) {
  detail::check(OperationName::Signal, signal.word, sizeof(std::uint64_t), pe);
  if (const std::int64_t delta = detail::delta_of(pe); delta != kNotMapped) {
    detail::apply_signal(detail::moved(signal.word, delta), signal.value, signal.op);
  } else {
    detail::cold_call<&remote::signal>(remote::SignalUpdate{signal.word, signal.value, signal.op},
                                       pe, remote::SignalOrder::None);
  }
}

namespace detail {

template <typename Scope>
__device__ void put_signal_bytes(void* dest,
                                 const void* source,
                                 std::size_t bytes,
                                 const Signal& signal,
                                 int pe,
                                 remote::Wait wait) {
  check(OperationName::PutSignal, dest, bytes, pe);
  check(OperationName::PutSignal, signal.word, sizeof(std::uint64_t), pe);
  const std::int64_t delta = delta_of(pe);
  if (delta == kNotMapped) {
    const remote::SignalUpdate update{signal.word, signal.value, signal.op};
    cold_call<&remote::put_signal<Scope>>(dest, source, bytes, update, pe, wait);
    if (wait == remote::Wait::Yes) {
      Scope::sync();
    }
    return;
  }
  copy<Scope>(moved(dest, delta), source, bytes);
  Scope::sync();
  if (is_leader<Scope>()) {
    // SYNC device-signal (pairs with include/weft/device/wait.cuh): the whole scope's stores
    fence_release();
    apply_signal(moved(signal.word, delta), signal.value, signal.op);
  }
}

}  // namespace detail

template <typename Scope = Thread, typename T>
__device__ void put_signal_nbi(
    T* dest, const T* source, std::size_t count, const Signal& signal, int pe) {
  static_assert(std::is_trivially_copyable<T>::value, "PEs exchange bytes");
  detail::put_signal_bytes<Scope>(dest, source, count * sizeof(T), signal, pe, remote::Wait::No);
}

template <typename Scope = Thread, typename T>
__device__ void put_signal(
    T* dest, const T* source, std::size_t count, const Signal& signal, int pe) {
  static_assert(std::is_trivially_copyable<T>::value, "PEs exchange bytes");
  detail::put_signal_bytes<Scope>(dest, source, count * sizeof(T), signal, pe, remote::Wait::Yes);
}

// A signal, and the PE that it is for.
struct Notice {
  Signal signal;
  int pe = 0;
};

// Many puts, one release, one flag for each peer: gives `count` notices, notice_of(0),
// notice_of(1), ..., to PEs that may differ. A PE that observes its signal also observes all that
// threads of the scope have put to it before the call, with put_nbi or p, however many puts those
// were. `source` of these puts must not change before quiet. Every thread of the scope gives
// notices, so notice_of is called once for each number, by any of them.
template <typename Scope = Block, typename NoticeOf>
__device__ void signal_each(std::uint32_t count, NoticeOf&& notice_of) {
  Scope::sync();
  const std::uint32_t first = Scope::rank();
  if (first >= count) {
    return;
  }
  // SYNC device-signal (pairs with include/weft/device/wait.cuh): the whole scope's stores
  fence_release();
  for (std::uint32_t i = first; i < count; i += Scope::size()) {
    const Notice notice = notice_of(i);
    detail::check(OperationName::Signal, notice.signal.word, sizeof(std::uint64_t), notice.pe);
    if (const std::int64_t delta = detail::delta_of(notice.pe); delta != kNotMapped) {
      detail::apply_signal(detail::moved(notice.signal.word, delta), notice.signal.value,
                           notice.signal.op);
    } else {
      detail::cold_call<&remote::signal>(
          remote::SignalUpdate{notice.signal.word, notice.signal.value, notice.signal.op},
          notice.pe, remote::SignalOrder::AfterPuts);
    }
  }
}

// Reads a signal word of this PE; the data of the put_signal that wrote it is visible afterwards.
inline __device__ std::uint64_t signal_fetch(const std::uint64_t* word) {
  detail::serve();
  // SYNC device-signal: pairs with put_signal.
  return load_acquire(word);
}

// Waits until `*word` compares true with `value`; returns the value seen (in the leader; in other
// threads `value`).
template <typename Scope = Thread>
__device__ std::uint64_t signal_wait_until(const std::uint64_t* word,
                                           Comparison comparison,
                                           std::uint64_t value) {
  return detail::wait_word_in<Scope>(OperationName::WaitUntil, word, comparison, value);
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_SIGNAL_CUH
