// Data and flag in one: 8 bytes of data with a number that tells that they are there, stored as one
// access of 16 bytes. So a receiver that sees the number has the data, and the sender needs no
// fence, which is most of what a small put_signal costs over NVLink. For words of one sender at a
// time.
#ifndef WEFT_DEVICE_TAGGED_CUH
#define WEFT_DEVICE_TAGGED_CUH

#include <weft/device/signal.cuh>
#include <weft/device/standard.hpp>

namespace weft::device {

// In symmetric memory; written by put_tagged, read by tagged_wait.
struct alignas(16) Tagged {
  std::uint64_t data;
  std::uint64_t tag;
};

// Stores `value`, of at most 8 bytes, with `tag` into `word` of `pe`. By one thread. Orders nothing
// else: neither earlier puts nor another word. Complete after quiet. To a PE that is not mapped it
// is a put_signal.
template <typename T>
__device__ void put_tagged(Tagged* word, const T& value, std::uint64_t tag, int pe) {
  static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= sizeof(std::uint64_t),
                "a tagged word has 8 bytes of data");
  detail::check(OperationName::PutSignal, word, sizeof(Tagged), pe);
  std::uint64_t data = 0;
  std::memcpy(&data, &value, sizeof(T));
  if (const std::int64_t delta = detail::delta_of(pe); delta != kNotMapped) {
    store_relaxed_16(detail::moved(word, delta), data, tag);
  } else {
    put_signal<Thread>(&word->data, &data, 1, {&word->tag, tag, SignalOp::Set}, pe);
  }
}

// Waits until `word` of this PE has this tag; returns its data. By one thread.
template <typename T>
__device__ T tagged_wait(const Tagged* word, std::uint64_t tag) {
  static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= sizeof(std::uint64_t),
                "a tagged word has 8 bytes of data");
  std::uint64_t data = 0;
  detail::spin_until(
      {FailureKind::None, OperationName::WaitUntil, -1, &word->tag, tag, sizeof(std::uint64_t)},
      [&] {
        std::uint64_t seen = 0;
        load_relaxed_16(word, data, seen);
        return seen == tag;
      });
  if (state().ring_count != 0) {
    // SYNC device-signal (pairs with include/weft/device/signal.cuh): another node's data was
    // stored before its tag, and not with it
    fence_acquire();
    data = load_relaxed(&word->data);
  }
  T value;
  std::memcpy(&value, &data, sizeof(T));
  return value;
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_TAGGED_CUH
