// fence and quiet. They concern what happened before them in the calling thread, and, through a scope's
// sync (__syncwarp, __syncthreads), what other threads of its block did: one thread may call for all.
#ifndef WEFT_DEVICE_ORDER_CUH
#define WEFT_DEVICE_ORDER_CUH

#include <weft/device/access.cuh>
#include <weft/device/remote.cuh>

namespace weft::device {

// Operations before it are visible at each target before operations after it to the same target. Waits for
// no peer: on the way by commands it is one more of them. It does not order what other blocks of the
// kernel did: that takes quiet.
inline __device__ void fence() {
  fence_release();  // SYNC device-fence: both sides of whatever pairs across it
  if (state().ring_count != 0) {
    remote::fence();
  }
}

// Returns when the operations before it, of this PE's whole GPU as far as the caller knows of them, are
// visible at their targets.
inline __device__ void quiet() {
  fence_full();  // SYNC device-fence: the same, and loads after it
  if (state().ring_count != 0) {
    remote::quiet();
  }
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_ORDER_CUH
