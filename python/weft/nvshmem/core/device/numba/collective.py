"""Collectives in kernels of numba. `team` is one of Teams, or a number.

`_block` and `_warp` ones are called by all threads of the block or warp with the same arguments, all others by one thread.
Kernels that meet wait for each other: all their blocks must fit on the GPU together.
"""

from ..names import OPERATIONS, reduced_by, scoped
from .calls import INT, POINTER, SIZE, TypingError, c_function, device_function, name_of, require_same, types

__all__ = [
    "alltoall", "alltoall_block", "alltoall_warp", "barrier", "barrier_all", "barrier_all_block", "barrier_all_warp",
    "barrier_block", "barrier_warp", "broadcast", "broadcast_block", "broadcast_warp", "fcollect", "fcollect_block",
    "fcollect_warp", "reduce", "reduce_block", "reduce_warp", "reducescatter", "reducescatter_block",
    "reducescatter_warp", "sync", "sync_all", "sync_all_block", "sync_all_warp", "sync_block", "sync_warp"]

_team_n_pes = c_function("nvshmem_team_n_pes", INT, INT)


def _meeting(call, scope, result):
    function = c_function(scoped(call, scope), result, INT)

    def implementation(team):
        function((team,))
    return implementation


def _meeting_of_all(call, scope):
    function = c_function(scoped(call, scope), types.void)

    def implementation():
        function(())
    return implementation


def _reduction(call, scope, dst_array, src_array, op):
    require_same(dst_array=dst_array, src_array=src_array)
    if not isinstance(op, types.StringLiteral):
        return None  # numba asks again with the text
    if op.literal_value not in OPERATIONS:
        raise TypingError(f"nvshmem.core.device.numba.{call}: there is no operation {op.literal_value!r}; there is {', '.join(OPERATIONS)}")
    name = f"{name_of(dst_array, reduced_by(op.literal_value), call)}_{op.literal_value}_{call}"
    return c_function(scoped(name, scope), INT, INT, POINTER, POINTER, SIZE)


def _reduce(scope, dst_array, src_array, op):
    function = _reduction("reduce", scope, dst_array, src_array, op)
    if function is None:
        return None

    def implementation(team, dst_array, src_array, op):
        function((team, dst_array, src_array, min(dst_array.size, src_array.size)))
    return implementation


def _reducescatter(scope, dst_array, src_array, op):
    function = _reduction("reducescatter", scope, dst_array, src_array, op)
    if function is None:
        return None

    def implementation(team, dst_array, src_array, op):
        function((team, dst_array, src_array, dst_array.size))
    return implementation


def _fcollect(scope, dst_array, src_array):
    require_same(dst_array=dst_array, src_array=src_array)
    function = c_function(scoped("fcollectmem", scope), INT, INT, POINTER, POINTER, SIZE)

    def implementation(team, dst_array, src_array):
        function((team, dst_array, src_array, src_array.size * src_array.itemsize))
    return implementation


def _alltoall(scope, dst_array, src_array):
    require_same(dst_array=dst_array, src_array=src_array)
    function = c_function(scoped("alltoallmem", scope), INT, INT, POINTER, POINTER, SIZE)

    def implementation(team, dst_array, src_array):
        each = min(dst_array.size, src_array.size) // _team_n_pes((team,))
        function((team, dst_array, src_array, each * src_array.itemsize))
    return implementation


def _broadcast(scope, dst_array, src_array):
    require_same(dst_array=dst_array, src_array=src_array)
    function = c_function(scoped("broadcastmem", scope), INT, INT, POINTER, POINTER, SIZE, INT)

    def implementation(team, dst_array, src_array, root=0):
        function((team, dst_array, src_array, min(dst_array.size, src_array.size) * src_array.itemsize, root))
    return implementation


@device_function
def barrier(team):
    """Completes what was put before, at all PEs, and meets."""
    return _meeting("barrier", "", INT)


@device_function
def barrier_warp(team):
    return _meeting("barrier", "warp", INT)


@device_function
def barrier_block(team):
    return _meeting("barrier", "block", INT)


@device_function
def barrier_all():
    return _meeting_of_all("barrier_all", "")


@device_function
def barrier_all_warp():
    return _meeting_of_all("barrier_all", "warp")


@device_function
def barrier_all_block():
    return _meeting_of_all("barrier_all", "block")


@device_function
def sync(team):
    """Meets; completes nothing."""
    return _meeting("team_sync", "", INT)


@device_function
def sync_warp(team):
    return _meeting("team_sync", "warp", INT)


@device_function
def sync_block(team):
    return _meeting("team_sync", "block", INT)


@device_function
def sync_all():
    return _meeting_of_all("sync_all", "")


@device_function
def sync_all_warp():
    return _meeting_of_all("sync_all", "warp")


@device_function
def sync_all_block():
    return _meeting_of_all("sync_all", "block")


@device_function
def reduce(team, dst_array, src_array, op):
    """`op` of all PEs' elements, as a text: "sum", "prod", "min", "max", and for integers "and", "or", "xor"."""
    return _reduce("", dst_array, src_array, op)


@device_function
def reduce_warp(team, dst_array, src_array, op):
    return _reduce("warp", dst_array, src_array, op)


@device_function
def reduce_block(team, dst_array, src_array, op):
    return _reduce("block", dst_array, src_array, op)


@device_function
def reducescatter(team, dst_array, src_array, op):
    """As reduce; this PE gets its share, as many elements as dst_array has."""
    return _reducescatter("", dst_array, src_array, op)


@device_function
def reducescatter_warp(team, dst_array, src_array, op):
    return _reducescatter("warp", dst_array, src_array, op)


@device_function
def reducescatter_block(team, dst_array, src_array, op):
    return _reducescatter("block", dst_array, src_array, op)


@device_function
def fcollect(team, dst_array, src_array):
    """All PEs' src_array one after the other."""
    return _fcollect("", dst_array, src_array)


@device_function
def fcollect_warp(team, dst_array, src_array):
    return _fcollect("warp", dst_array, src_array)


@device_function
def fcollect_block(team, dst_array, src_array):
    return _fcollect("block", dst_array, src_array)


@device_function
def alltoall(team, dst_array, src_array):
    """Part i of src_array goes to PE i of the team, which has a part for each PE."""
    return _alltoall("", dst_array, src_array)


@device_function
def alltoall_warp(team, dst_array, src_array):
    return _alltoall("warp", dst_array, src_array)


@device_function
def alltoall_block(team, dst_array, src_array):
    return _alltoall("block", dst_array, src_array)


@device_function
def broadcast(team, dst_array, src_array, root=0):
    """src_array of PE `root` of the team."""
    return _broadcast("", dst_array, src_array)


@device_function
def broadcast_warp(team, dst_array, src_array, root=0):
    return _broadcast("warp", dst_array, src_array)


@device_function
def broadcast_block(team, dst_array, src_array, root=0):
    return _broadcast("block", dst_array, src_array)
