// fence and quiet. They apply to the earlier operations of the calling thread and of all threads of
// this PE that it has synchronized with: through a scope's sync (__syncwarp, __syncthreads), a
// grid's, or a flag in memory. So one thread may call for all.
#ifndef WEFT_DEVICE_ORDER_CUH
#define WEFT_DEVICE_ORDER_CUH

#include <weft/device/access.cuh>
#include <weft/device/remote.cuh>

namespace weft::device {

// Operations before the fence are visible at each target before operations that the calling block
// issues after it to the same target. Waits for no peer: to peers reached by command it is just
// another command, or a few if other blocks have posted some that may not be complete.
inline __device__ void fence() {
  fence_release();  // SYNC device-fence: both sides of any pair across it
  if (state().ring_count != 0) {
    detail::cold_call<&remote::fence>();
  }
}

// Returns when all earlier operations of this PE's GPU that the caller has synchronized with are
// visible at their targets.
inline __device__ void quiet() {
  fence_full();  // SYNC device-fence: as above, and loads after it
  if (state().ring_count != 0) {
    detail::cold_call<&remote::quiet>();
  }
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_ORDER_CUH
