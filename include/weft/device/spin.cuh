// How a GPU thread waits: it polls, applies operations from other nodes (inbox.cuh), and now and
// then checks whether it should go on. If a peer is lost or WEFT_TIMEOUT_S has passed, the kernel
// aborts with a record. After WEFT_WAIT_REPORT one of the waiting threads tells the host where it
// waits, for what, and what it has seen.
#ifndef WEFT_DEVICE_SPIN_CUH
#define WEFT_DEVICE_SPIN_CUH

#include <weft/device/failure.cuh>
#include <weft/device/inbox.cuh>
#include <weft/device/standard.hpp>

namespace weft::device::detail {

// The number of polls of a waiting thread between two checks.
inline constexpr std::uint32_t kLooksPerCheck = 4096;

inline __device__ std::uint32_t now_ms() {
  const auto ms = static_cast<std::uint32_t>(now_ns() / 1'000'000);
  return ms == 0 ? 1 : ms;  // 0 means "not yet"
}

inline __device__ std::uint64_t seen_at(const void* address, std::uint32_t word_bytes) {
  if (address == nullptr || word_bytes < 4) {
    return 0;
  }
  return word_bytes == 8 ? load_relaxed(static_cast<const std::uint64_t*>(address))
                         : load_relaxed(static_cast<const std::uint32_t*>(address));
}

// One thread of the GPU at a time, and each as long after the last as waits are reported.
inline __device__ bool may_report(std::uint32_t now) {
  const std::uint32_t last = load_relaxed(&whole_state().wait_reports->last_ms);
  return (last == 0 || now - last >= whole_state().wait_report_ms) &&
         atomicCAS(&whole_state().wait_reports->last_ms, last, now) == last;
}

// In ms: the time, and how long a thread has been waiting.
struct WaitTime {
  std::uint32_t now, waited;
};

// Tells the host of a wait that is long enough.
inline __device__ void report_wait(std::uint32_t what,
                                   std::int32_t pe,
                                   const void* address,
                                   std::uint64_t expected,
                                   WaitTime time) {
  if (whole_state().wait_report_ms == 0 || time.waited < whole_state().wait_report_ms ||
      !may_report(time.now)) {
    return;
  }
  WaitRecord& record = *whole_state().waiting;
  fill_record(record.wait, what, pe, address, expected);
  record.wait.seen = seen_at(address, what >> 16U);
  record.wait.waited_ms = time.waited;
  // SYNC wait-record (pairs with src/runtime/device/watch.cpp): `number` is written last.
  fence_release();
  store_relaxed(&record.number, ++whole_state().wait_reports->number);
}

// Returns the time since which the thread has been waiting, which `since_ms` is from the second
// check on.
inline __device__ __noinline__ std::uint32_t check_wait(std::uint32_t since_ms,
                                                        std::uint32_t what,
                                                        std::int32_t pe,
                                                        const void* address,
                                                        std::uint64_t expected) {
  if (state().heap == nullptr) {
    return since_ms;
  }
  // SYNC device-abort (pairs with src/runtime/device/watch.cpp): then `pe` is valid.
  if (const std::uint32_t kind = load_acquire(&whole_state().abort->kind); kind != 0) {
    end_kernel(what | kind, whole_state().abort->pe < 0 ? pe : whole_state().abort->pe, address,
               expected);
  }
  const std::uint32_t now = now_ms();
  if (since_ms == 0) {
    return now;
  }
  const std::uint32_t waited = now - since_ms;
  const std::uint32_t word_bytes = what >> 16U;
  if (whole_state().wait_timeout_ms != 0 && waited >= whole_state().wait_timeout_ms) {
    whole_state().failure->seen = seen_at(address, word_bytes);
    whole_state().failure->waited_ms = waited;
    end_kernel(what | static_cast<std::uint32_t>(FailureKind::TimedOut), pe, address, expected);
  }
  report_wait(what, pe, address, expected, {now, waited});
  return since_ms;
}

// What a waiting thread counts.
class Patience {
 public:
  // Call after each poll. `weight`, a power of two: how many polls of this GPU's memory take as
  // long.
  __device__ void poll(const Failure& waiting, std::uint32_t weight = 1) {
    looks_ += weight;
    if ((looks_ & (kLooksPerCheck - 1)) == 0) {
      since_ms_ =
          check_wait(since_ms_, packed(waiting), waiting.pe, waiting.address, waiting.expected);
    }
  }

 private:
  std::uint32_t looks_ = 0;
  std::uint32_t since_ms_ = 0;
};

// Polls until `done()` holds. The caller does the acquire.
template <typename Done>
__device__ void spin_until(const Failure& waiting, Done&& done) {
  Patience patience;
  while (!done()) {
    serve();
    patience.poll(waiting);
  }
}

}  // namespace weft::device::detail

#endif  // WEFT_DEVICE_SPIN_CUH
