"""Put, get and signals, on a stream. dst and src are Buffers, arrays or tensors, of the same type and number of elements.

`stream` is a Stream of cuda.core, torch or CuPy, an NvshmemStream or a number; None is the current one. Memory of the CPU
has no streams: there a call is done when it returns.
"""

from ... import _cuda, operations
from . import init_fini
from .memory import operand, signal_of
from .nvshmem_types import ComparisonType, NvshmemInvalid, SignalOp, raised_by_nvshmem

__all__ = ["SignalOp", "get", "put", "put_signal", "quiet", "signal_op", "signal_wait"]

_COMPARISONS = {ComparisonType.CMP_EQ: "==", ComparisonType.CMP_NE: "!=", ComparisonType.CMP_GT: ">", ComparisonType.CMP_LE: "<=",
                ComparisonType.CMP_LT: "<", ComparisonType.CMP_GE: ">="}


def put(dst, src, remote_pe=-1, stream=None):
    with raised_by_nvshmem():
        operations.put(operand(dst), operand(src), remote_pe, stream=of_memory(stream))


def get(dst, src, remote_pe=-1, stream=None):
    with raised_by_nvshmem():
        operations.get(operand(dst), operand(src), remote_pe, stream=of_memory(stream))


def put_signal(dst, src, signal_var, signal_val, signal_op, remote_pe=-1, stream=None):
    """A put, and then the update of the signal of `remote_pe`: who sees it sees the data."""
    word, how = signal_of(signal_var, "nvshmem.core.put_signal"), _operation_of(signal_op, "nvshmem.core.put_signal")
    with raised_by_nvshmem():
        operations.put_signal(operand(dst), operand(src), word, remote_pe, value=signal_val, operation=how, stream=of_memory(stream))


def signal_op(signal_var, signal_val, signal_op, remote_pe=-1, stream=None):
    word, how = signal_of(signal_var, "nvshmem.core.signal_op"), _operation_of(signal_op, "nvshmem.core.signal_op")
    with raised_by_nvshmem():
        operations.signal_post(word, remote_pe, value=signal_val, operation=how, stream=of_memory(stream))


def signal_wait(signal_var, signal_val, signal_op, stream=None):
    """Until the signal of this PE and `signal_val` compare so: a ComparisonType."""
    if signal_op not in _COMPARISONS:
        raise NvshmemInvalid(f"nvshmem.core.signal_wait: {signal_op!r} is no ComparisonType")
    word = signal_of(signal_var, "nvshmem.core.signal_wait")
    with raised_by_nvshmem():
        operations.signal_wait_until(word, _COMPARISONS[signal_op], signal_val, stream=of_memory(stream))


def quiet(stream=None):
    """Completes what was put before."""
    with raised_by_nvshmem():
        operations.quiet(stream=queue_of(stream))


def of_memory(stream):
    return None if init_fini.device() == "cpu" else stream


def queue_of(stream):
    """For calls that name no memory, by which weft would know that they are a stream's: the current one's number for None."""
    if init_fini.device() == "cpu":
        return None
    if stream is not None:
        return stream
    return _cuda.current_stream(_cuda.number())


def _operation_of(signal_op, name):
    if signal_op not in (SignalOp.SIGNAL_SET, SignalOp.SIGNAL_ADD):
        raise NvshmemInvalid(f"{name}: {signal_op!r} is no SignalOp")
    return "set" if signal_op == SignalOp.SIGNAL_SET else "add"
