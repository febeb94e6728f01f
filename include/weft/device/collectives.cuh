// Collectives of a team: alltoall, fcollect, broadcast, reduce, reduce_scatter.
//
//   weft::device::reduce<weft::device::Block, weft::device::Sum>(weft::device::kWorld, sum, mine, count);
//
// All members make the same calls of a team in the same order, with the same scope, counts and addresses
// (symmetric ones); one call of a team at a time in a PE. `source` is not changed by anybody during the
// call, and `dest` belongs to the call. A count of 0 is nothing, not a meeting.
// Completion: when a call returns, `dest` of this PE is complete for all threads of the scope, and `source`
// may be changed. Other members may still be in the call.
// Grid scope: all blocks of a kernel that launch_collective started make the call. It is not a meeting of
// the grid: between one block's touching `source` or `dest` and the call, let there be a sync<Grid> or
// grid_sync, a collective of grid scope on the same team, or the start of the kernel.
#ifndef WEFT_DEVICE_COLLECTIVES_CUH
#define WEFT_DEVICE_COLLECTIVES_CUH

#include <weft/device/broadcast.cuh>
#include <weft/device/exchange.cuh>
#include <weft/device/reduce.cuh>

#endif  // WEFT_DEVICE_COLLECTIVES_CUH
