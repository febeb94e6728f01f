"""Collectives on a stream, as in rma: all PEs of the team call them, with the same numbers of elements."""

import time

from ... import operations
from .direct import team_of
from .memory import Buffer, operand
from .nvshmem_types import NvshmemInvalid, Teams, raised_by_nvshmem
from .rma import of_memory, queue_of


def reduce(team, dst_array, src_array, op, stream=None):
    """Of all PEs, to all: `op` is "sum", "min" or "max", and of integers "prod", "and", "or", "xor" too."""
    _run(team, "reduce", operand(dst_array), operand(src_array), op, stream=of_memory(stream))


def reducescatter(team, dst_array, src_array, op, stream=None):
    """As reduce; each PE gets its own block of the result."""
    _run(team, "reduce_scatter", operand(dst_array), operand(src_array), op, stream=of_memory(stream))


def alltoall(team, dst_array, src_array, stream=None):
    _run(team, "alltoall", operand(dst_array), operand(src_array), stream=of_memory(stream))


def fcollect(team, dst_array, src_array, stream=None):
    _run(team, "fcollect", operand(dst_array), operand(src_array), stream=of_memory(stream))


def broadcast(team, dst_array, src_array, root=0, stream=None):
    _run(team, "broadcast", operand(dst_array), operand(src_array), root, stream=of_memory(stream))


def barrier(team, stream=None):
    """Completes what was put before, and waits for the team."""
    queue = queue_of(stream)
    with raised_by_nvshmem():
        operations.quiet(stream=queue)
        team_of(team).sync(stream=queue)


def sync(team, stream=None):
    """Waits for the team."""
    _run(team, "sync", stream=queue_of(stream))


def barrier_all(stream=None):
    with raised_by_nvshmem():
        operations.barrier_all(stream=queue_of(stream))


def sync_all(stream=None):
    sync(Teams.TEAM_WORLD, stream)


def collective_on_buffer(coll, team, dest, src, dtype=None, op=None, root=0, stream=None, enable_timing=False):
    """A collective over Buffers whose bytes are elements of `dtype`. Returns ms if `enable_timing`, and then waits for it."""
    calls = {"reduce": (reduce, op), "reducescatter": (reducescatter, op), "alltoall": (alltoall,), "fcollect": (fcollect,),
             "broadcast": (broadcast, root)}
    if coll not in calls or not isinstance(dest, Buffer) or not isinstance(src, Buffer):
        raise NvshmemInvalid(f"nvshmem.core.collective_on_buffer: {coll!r} on a {type(dest).__name__} and a {type(src).__name__}; "
                             f"give Buffers, and one of {', '.join(calls)}")
    call, *more = calls[coll]
    with raised_by_nvshmem():
        sides = dest.view(dtype or "uint8"), src.view(dtype or "uint8")
    start = time.perf_counter()
    call(team, *sides, *more, stream=stream)
    if not enable_timing:
        return 0
    if (queue := of_memory(stream)) is not None:
        queue.sync()
    return (time.perf_counter() - start) * 1e3


def _run(team, method, *arguments, stream):
    with raised_by_nvshmem():
        getattr(team_of(team), method)(*arguments, stream=stream)
