"""weft._weft, the module of C++: types and texts. Users see these names as weft.put, weft.Array and so on.

In all of these: dest and source of one call have the same element type and number of elements and are contiguous; an
array in GPU memory is used on `stream` (torch's current stream, or the default stream, without one), and the call then
returns at once; functions on CPU memory take no stream. Any thread may call them; the GIL is released while they work.
Errors: weft.NotSymmetric, WrongDtype, WrongShape, WrongDevice, NotContiguous, Freed for arguments that do not fit,
InvalidArgument for a PE that does not exist, NotInitialized, PeerLost.
"""

from collections.abc import Sequence
from typing import Any, Literal

Comparison = Literal["==", "!=", ">", ">=", "<", "<="]
Reduction = Literal["sum", "prod", "min", "max", "and", "or", "xor"]
SignalOperation = Literal["set", "add"]
ArrayLike = Any  # weft.Array, or an array or tensor of numpy, torch, CuPy or JAX
Stream = Any  # torch.cuda.Stream, cupy.cuda.Stream, or the number of a cudaStream_t

class Array:
    """A symmetric array, a view of one, or a view of a peer's. Made by weft.empty and weft.zeros.

    It has the buffer protocol (numpy.asarray, memoryview: CPU only) and DLPack (torch.from_dlpack, cupy.from_dlpack), both
    without a copy. Indices, slices and ... give views. While such a view of another library is alive, the array cannot be
    freed.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]:
        """In elements, as in torch (numpy counts bytes)."""
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int:
        """The number of elements."""
    @property
    def nbytes(self) -> int: ...
    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
    @property
    def dtype(self) -> str:
        """The name of the element type, as in numpy and torch: "float32"."""
    @property
    def device(self) -> str:
        """"cpu", or "cuda:0"."""
    @property
    def address(self) -> int:
        """Of the first element in this process."""
    @property
    def is_contiguous(self) -> bool: ...
    @property
    def is_freed(self) -> bool: ...
    @property
    def is_peer(self) -> bool:
        """True for what `peer` returned."""
    def __getitem__(self, key: Any) -> Array: ...
    def __setitem__(self, key: Any, value: Any) -> None:
        """A number, nested lists of numbers, or an array of the same element type and number of elements. CPU memory."""
    def __len__(self) -> int: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> int: ...
    def item(self) -> Any:
        """The number in an array of one element. CPU memory."""
    def tolist(self) -> Any:
        """The numbers as nested lists. CPU memory."""
    def reshape(self, *shape: int | Sequence[int]) -> Array:
        """A view with another shape of as many elements; one extent may be -1. weft.NotContiguous for a view with gaps."""
    def peer(self, pe: int) -> Array:
        """The memory of `pe` behind this array, for loads and stores of this process: same shape, no copy. Not collective.
        weft.NotMapped if `pe` is on another node (weft.is_mapped asks). Order is up to the program: signals, barriers."""
    def __dlpack__(self, **options: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Context:
    """An independent sequence of operations: fence and quiet on one context do not wait for another. A context manager that
    closes it."""

    def __init__(self) -> None: ...
    def fence(self) -> None: ...
    def quiet(self) -> None: ...
    def close(self) -> None:
        """Completes its operations, and frees it."""
    def __enter__(self) -> Context: ...
    def __exit__(self, *error: Any) -> None: ...

class Team:
    """An ordered set of PEs: weft.world, weft.node (the PEs that share memory), or split off one of these.

    One thread of each of its PEs calls a collective, in the same order on all PEs. dest and source are symmetric, must not
    overlap, and may be changed when the call returns (on a stream: in its order); that says nothing of other PEs.
    PEs that call another function, or with another element type, number of elements, root or reduction, raise weft.Mismatch
    on all PEs, as does a call that one PE refused: as far as WEFT_CHECK_COLLECTIVES compares them (by default where the
    PEs share memory, for CPU memory).
    """

    @property
    def is_member(self) -> bool:
        """False on PEs that a split left out; other questions then raise weft.InvalidArgument."""
    @property
    def pe(self) -> int:
        """This PE's number in the team."""
    @property
    def pe_count(self) -> int: ...
    def translate(self, pe: int, to: Team) -> int:
        """The number in `to` of the PE that is `pe` here; -1 if it is not in it."""
    def split(self, start: int, stride: int, size: int) -> Team:
        """The PEs start, start + stride, ..., `size` of them. Collective over this team, with the same numbers."""
    def split_2d(self, x_size: int) -> tuple[Team, Team]:
        """PE p is at x = p % x_size, y = p // x_size: the team of its row, and that of its column. Collective."""
    def destroy(self) -> None:
        """Collective over the team."""
    def sync(self, *, stream: Stream | None = None) -> None:
        """Returns when all PEs have called it. It does not complete puts: weft.quiet before it does, weft.barrier_all does
        both."""
    def alltoall(self, dest: ArrayLike, source: ArrayLike, *, stream: Stream | None = None) -> None:
        """Block k of source goes to block `pe` of dest on PE k; both have pe_count equal blocks."""
    def broadcast(self, dest: ArrayLike, source: ArrayLike, root: int = 0, *, stream: Stream | None = None) -> None:
        """source of `root`, a PE of the team, goes to dest of all PEs."""
    def fcollect(self, dest: ArrayLike, source: ArrayLike, *, stream: Stream | None = None) -> None:
        """The sources of all PEs, in their order, in dest of all PEs: dest has pe_count times the elements of source."""
    def collect(self, dest: ArrayLike, source: ArrayLike) -> list[int]:
        """As fcollect, for sources of different sizes: returns the number of elements of each PE, and the first sum of them
        in dest are written. If one PE's dest has no room for all of them, every PE raises weft.WrongShape. CPU only."""
    def reduce(self, dest: ArrayLike, source: ArrayLike, operation: Reduction = "sum", *, stream: Stream | None = None) -> None:
        """Elementwise over all PEs, which all get the result, bitwise the same in every run. dest may be source. Integers,
        float32, float64; complex numbers on the CPU."""
    def inclusive_scan(self, dest: ArrayLike, source: ArrayLike, operation: Reduction = "sum") -> None:
        """Elementwise over the PEs from 0 to this one. CPU only."""
    def exclusive_scan(self, dest: ArrayLike, source: ArrayLike, operation: Reduction = "sum") -> None:
        """Elementwise over the PEs before this one; zeros on PE 0. CPU only."""
    def reduce_scatter(self, dest: ArrayLike, source: ArrayLike, operation: Reduction = "sum", *, stream: Stream | None = None) -> None:
        """Block k of the elementwise result goes to PE k: source has pe_count times the elements of dest. GPU only."""

def put(dest: ArrayLike, source: ArrayLike, pe: int, *, context: Context | None = None, stream: Stream | None = None) -> None:
    """Writes source into dest of `pe`. dest: symmetric. Complete when it returns: source may be reused. Visible at the
    target after quiet, barrier_all, or a signal that was put later."""

def put_nbi(dest: ArrayLike, source: ArrayLike, pe: int, *, context: Context | None = None, stream: Stream | None = None) -> None:
    """As put, but returns when it is queued: source must not change, nor be freed, before quiet."""

def get(dest: ArrayLike, source: ArrayLike, pe: int, *, context: Context | None = None, stream: Stream | None = None) -> None:
    """Reads source of `pe` into dest. source: symmetric. Returns when dest is filled."""

def get_nbi(dest: ArrayLike, source: ArrayLike, pe: int, *, context: Context | None = None, stream: Stream | None = None) -> None:
    """As get, but dest is filled after quiet."""

def iput(dest: ArrayLike, source: ArrayLike, pe: int, *, context: Context | None = None) -> None:
    """Writes the elements of source into those of dest of `pe`, where either is a view with gaps: a column, every third
    element. Both have the same shape; their strides are at least 1. dest: symmetric. CPU memory only. Complete when it
    returns: source may be reused. Elements that do not follow each other travel one by one to another node: for many of
    them copy into a contiguous array, and weft.put that."""

def iget(dest: ArrayLike, source: ArrayLike, pe: int, *, context: Context | None = None) -> None:
    """Reads the elements of source of `pe` into those of dest; as weft.iput. source: symmetric. Returns when dest is
    filled."""

def fence(context: Context | None = None) -> None:
    """Operations before it are visible at each target before operations after it to the same target."""

def quiet(context: Context | None = None, *, stream: Stream | None = None) -> None:
    """Returns when all operations before it are visible at their targets; with stream, later work on it waits for that."""

def barrier_all(*, stream: Stream | None = None) -> None:
    """Collective: quiet, then waits for all PEs. With stream, it is enqueued there."""

def sync_all() -> None:
    """Collective: waits for all PEs, without quiet."""

def signal_wait_until(signal: ArrayLike, comparison: Comparison, value: int, *, stream: Stream | None = None) -> int:
    """Waits until a signal of this PE compares true with value, and returns what was seen. signal: one element of uint64.
    The data of the put_signal that made it so is visible then. In GPU memory: later work on the stream waits."""

def wait_until_all(words: ArrayLike, comparison: Comparison, value: int, *, done: Sequence[bool] | None = None) -> None:
    """Waits until all words of this PE compare true with value. words: contiguous, in symmetric CPU memory, of int32, int64,
    uint32 or uint64: signals, or what atomics of others change. Data that their writers put before is visible then.
    done: those with done[i] true are left out. weft.PeerLost if a PE is lost first."""

def wait_until_any(words: ArrayLike, comparison: Comparison, value: int, *, done: Sequence[bool] | None = None) -> int | None:
    """Waits until one of the words compares true with value, and returns its index; None if done leaves out all. Of several
    that do, each gets its turn. As weft.wait_until_all."""

def wait_until_some(words: ArrayLike, comparison: Comparison, value: int, *, done: Sequence[bool] | None = None) -> list[int]:
    """Waits until at least one of the words compares true with value, and returns the indices of all that do; [] if done
    leaves out all. As weft.wait_until_all."""

def signal_fetch(signal: ArrayLike) -> int:
    """A signal of this PE, now; the data of the put_signal that wrote it is visible then. CPU memory only."""

def atomic_set(dest: ArrayLike, value: float, pe: int, *, context: Context | None = None) -> None:
    """dest: one element of symmetric CPU memory (array[i]), here and in all atomics: of int32, int64, uint32, uint64, and for
    set, fetch and swap also float32, float64. Those that return nothing are done after quiet; the others when they return."""

def atomic_fetch(dest: ArrayLike, pe: int, *, context: Context | None = None) -> float:
    """What one element of `pe` is, read at once. Any of the six types of atomic_set."""

def atomic_swap(dest: ArrayLike, value: float, pe: int, *, context: Context | None = None) -> float:
    """Writes value, and returns what was there. Any of the six types of atomic_set."""

def atomic_compare_swap(dest: ArrayLike, condition: int, value: int, pe: int, *, context: Context | None = None) -> int:
    """Writes value where dest equals condition; returns what dest was."""

def atomic_add(dest: ArrayLike, value: int, pe: int, *, context: Context | None = None) -> None:
    """Adds value to one element of `pe`. Visible there after quiet. Integers of 32 and 64 bits."""

def atomic_inc(dest: ArrayLike, pe: int, *, context: Context | None = None) -> None:
    """Adds 1. As atomic_add."""

def atomic_and(dest: ArrayLike, value: int, pe: int, *, context: Context | None = None) -> None:
    """Bitwise and. As atomic_add."""

def atomic_or(dest: ArrayLike, value: int, pe: int, *, context: Context | None = None) -> None:
    """Bitwise or. As atomic_add."""

def atomic_xor(dest: ArrayLike, value: int, pe: int, *, context: Context | None = None) -> None:
    """Bitwise xor. As atomic_add."""

def atomic_fetch_add(dest: ArrayLike, value: int, pe: int, *, context: Context | None = None) -> int:
    """Adds value to one element of `pe`, and returns what was there. Done when it returns. Integers of 32 and 64 bits."""

def atomic_fetch_inc(dest: ArrayLike, pe: int, *, context: Context | None = None) -> int:
    """Adds 1. As atomic_fetch_add."""

def atomic_fetch_and(dest: ArrayLike, value: int, pe: int, *, context: Context | None = None) -> int:
    """Bitwise and. As atomic_fetch_add."""

def atomic_fetch_or(dest: ArrayLike, value: int, pe: int, *, context: Context | None = None) -> int:
    """Bitwise or. As atomic_fetch_add."""

def atomic_fetch_xor(dest: ArrayLike, value: int, pe: int, *, context: Context | None = None) -> int:
    """Bitwise xor. As atomic_fetch_add."""


world: Team
node_team: Team
machine_team: Team
machine_peers: Team
