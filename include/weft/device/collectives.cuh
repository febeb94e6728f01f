// Collectives of a team: alltoall, alltoallv, fcollect, broadcast, reduce, reduce_scatter.
//
//   weft::device::reduce<weft::device::Block, weft::device::Sum>(weft::device::kWorld, sum, mine,
//   count);
//
// All members make the same calls on a team in the same order, with the same scope, counts and
// (symmetric) addresses. A PE has at most one call per team in progress. Nobody may change `source`
// during the call, and `dest` belongs to the call. A call with a count of 0 does nothing and does
// not synchronize. Completion: when a call returns, `dest` of this PE is complete for all threads
// of the scope, and `source` may be changed. Other members may still be in the call.
// Grid scope: all blocks of a kernel that launch_collective started make the call. It does not
// synchronize the grid: between a block's access to `source` or `dest` and the call there must be a
// sync<Grid>, a grid_sync, a collective of grid scope on the same team, or the start of the kernel.
#ifndef WEFT_DEVICE_COLLECTIVES_CUH
#define WEFT_DEVICE_COLLECTIVES_CUH

#include <weft/device/broadcast.cuh>
#include <weft/device/exchange.cuh>
#include <weft/device/reduce.cuh>
#include <weft/device/uneven.cuh>

#endif  // WEFT_DEVICE_COLLECTIVES_CUH
