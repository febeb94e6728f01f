// How a GPU thread waits: it polls, applies operations from other nodes (inbox.cuh), and periodically checks
// whether a peer is lost; if so, the kernel aborts with a record.
#ifndef WEFT_DEVICE_SPIN_CUH
#define WEFT_DEVICE_SPIN_CUH

#include <weft/device/failure.cuh>
#include <weft/device/inbox.cuh>

#include <cstdint>

namespace weft::device::detail {

// The number of polls of a waiting thread between two checks for other events.
inline constexpr std::uint32_t kLooksPerCheck = 4096;

// Aborts the kernel if a peer is lost. `spins` counts the caller's polls.
inline __device__ void check_abort(std::uint32_t spins, const Failure& waiting) {
  if ((spins & (kLooksPerCheck - 1)) != kLooksPerCheck - 1 || state().abort == nullptr) {
    return;
  }
  // SYNC device-abort (pairs with src/runtime/device/watch.cpp): then `pe` is valid.
  if (load_acquire(&state().abort->is_set) != 0) {
    Failure failure = waiting;
    failure.kind = FailureKind::PeerLost;
    failure.pe = state().abort->pe;
    fail(failure);
  }
}

// Polls until `done()` holds. The caller does the acquire.
template <typename Done>
__device__ void spin_until(const Failure& waiting, Done&& done) {
  for (std::uint32_t spins = 0; !done(); ++spins) {
    serve();
    check_abort(spins, waiting);
  }
}

}  // namespace weft::device::detail

#endif  // WEFT_DEVICE_SPIN_CUH
