"""NVSHMEM's calls in kernels of CuTe DSL, under the names of NVSHMEM4Py's documentation.

    import nvshmem.core.device.cute as nvshmem_cute         # after weft.nvshmem.install()
    import nvshmem.core.interop.cute as nvshmem_cute_interop

    @cute.kernel
    def shift(dst: cute.Tensor, src: cute.Tensor, pe: cutlass.Int32):
        nvshmem_cute.put_block(dst, src, pe)

dst, src: contiguous tensors of one element type; of two sizes the smaller is copied. A signal is a tensor of Int64 or Uint64, and
an update or a value of one element concerns the first. `_nbi` calls return before the source may be reused; `_block` and
`_warp` calls are made by all threads of the block or warp with the same arguments, all others by one thread. `team` is one of
Teams, or a number. Kernels that meet wait for each other: all their blocks must fit on the GPU together.

A kernel is linked with libnvshmem_device.bc, and needs its state before it runs: interop.cute.cute_compile_helper gives it.
"""

import functools

try:
    import cutlass
    from cutlass import Float16, Float32, Float64, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64, cute
except ImportError as error:
    raise ImportError(f"nvshmem.core.device.cute needs CuTe DSL (nvidia-cutlass-dsl 4.8): {error}") from error

from ..nvshmem_types import NvshmemInvalid
from .library import device_library
from .names import ANY, BITS, NUMBERS, OPERATIONS, reduced_by, scoped

__all__ = [
    "alltoall", "alltoall_block", "alltoall_warp", "atomic_add", "atomic_and", "atomic_compare_swap", "atomic_fetch", "atomic_fetch_add",
    "atomic_fetch_and", "atomic_fetch_inc", "atomic_fetch_or", "atomic_fetch_xor", "atomic_inc", "atomic_or", "atomic_set", "atomic_swap",
    "atomic_xor", "barrier", "barrier_all", "barrier_all_block", "barrier_all_warp", "barrier_block", "barrier_warp", "broadcast",
    "broadcast_block", "broadcast_warp", "fcollect", "fcollect_block", "fcollect_warp", "fence", "g", "get", "get_block",
    "get_multicast_tensor", "get_nbi", "get_nbi_block", "get_nbi_warp", "get_peer_tensor", "get_warp", "my_pe", "n_pes", "p", "put",
    "put_block", "put_nbi", "put_nbi_block", "put_nbi_warp", "put_signal", "put_signal_block", "put_signal_nbi", "put_signal_nbi_block",
    "put_signal_nbi_warp", "put_signal_warp", "put_warp", "quiet", "reduce", "reduce_block", "reduce_warp", "reducescatter",
    "reducescatter_block", "reducescatter_warp", "signal_op", "signal_wait_until", "sync", "sync_all", "sync_all_block", "sync_all_warp",
    "sync_block", "sync_warp", "team_my_pe", "team_n_pes"]

# Elements as NVSHMEM's names spell them.
_NAMES = {Int8: "int8", Int16: "int16", Int32: "int32", Int64: "int64", Uint8: "uint8", Uint16: "uint16", Uint32: "uint32",
          Uint64: "uint64", Float16: "half", Float32: "float", Float64: "double"}
_ADDRESS = Int64  # tensors pass as this


# ---- How a function of this module becomes a call of C.

@functools.cache
def _prototype(name, returns, parameters):
    return cute.ffi(name=name, params_types=list(parameters), return_type=returns, source=device_library("bc"))


def _call(name, returns, *arguments):
    """arguments: pairs of a type and a value, which is converted to it."""
    result = _prototype(name, returns, tuple(kind for kind, _ in arguments))(*(kind(value) for kind, value in arguments))
    return None if returns is None else returns(result)


def _address(tensor, name):
    if not isinstance(tensor, cute.Tensor):
        raise NvshmemInvalid(f"nvshmem.core.device.cute: {name} is a {type(tensor).__name__}, not a cute.Tensor")
    size, extent = cute.size(tensor), cute.cosize(tensor.layout)
    if isinstance(size, int) and isinstance(extent, int) and size != extent:
        raise NvshmemInvalid(f"nvshmem.core.device.cute: {name} has gaps ({tensor.layout}), and calls take contiguous tensors")
    return _ADDRESS, tensor.iterator.toint()


def _addresses(**tensors):
    """Those of tensors of one element type."""
    found = [_address(tensor, name) for name, tensor in tensors.items()]
    kinds = {name: tensor.element_type for name, tensor in tensors.items()}
    if len(set(kinds.values())) != 1:
        raise NvshmemInvalid("nvshmem.core.device.cute: " + ", ".join(f"{name} has {kind}" for name, kind in kinds.items()) + ", not the same")
    return found


def _signal(tensor):
    address = _address(tensor, "signal_var")
    if tensor.element_type not in (Int64, Uint64):
        raise NvshmemInvalid(f"nvshmem.core.device.cute: a signal is a tensor of Int64 or Uint64, not of {tensor.element_type}")
    return address


def _count(*tensors):
    """Elements of the smallest."""
    sizes = [cute.size(tensor) for tensor in tensors]
    return min(sizes) if all(isinstance(size, int) for size in sizes) else functools.reduce(cutlass.min, map(Int64, sizes))


def _bytes(tensor, count):
    return Int64, Int64(count) * (tensor.element_type.width // 8)


def _name_of(tensor, allowed, call):
    found = _NAMES.get(tensor.element_type)
    if found not in allowed:
        raise NvshmemInvalid(f"nvshmem.core.device.cute.{call}: there is none for {tensor.element_type}; there is for {', '.join(allowed)}")
    return found


# ---- Who the PE is, signals, order.

def my_pe():
    return _call("nvshmem_my_pe", Int32)


def n_pes():
    return _call("nvshmem_n_pes", Int32)


def team_my_pe(team):
    return _call("nvshmem_team_my_pe", Int32, (Int32, team))


def team_n_pes(team):
    return _call("nvshmem_team_n_pes", Int32, (Int32, team))


def signal_op(signal_var, signal_val, signal_op, pe):
    """Updates the signal of `pe` by a SignalOp."""
    _call("nvshmemx_signal_op", None, _signal(signal_var), (Uint64, signal_val), (Int32, int(signal_op)), (Int32, pe))


def signal_wait_until(signal_var, cmp, value):
    """Until this PE's signal and `value` compare so, a ComparisonType. The signal as it was then."""
    return _call("nvshmem_signal_wait_until", Uint64, _signal(signal_var), (Int32, int(cmp)), (Uint64, value))


def fence():
    """What was put before is visible before what is put later, at each PE."""
    _call("nvshmem_fence", None)


def quiet():
    """Completes what was put before."""
    _call("nvshmem_quiet", None)


# ---- Memory of other PEs.

def get_peer_tensor(tensor, pe):
    """The same tensor of `pe`, for loads and stores; at address 0 where they do not reach it."""
    address = _call("nvshmem_ptr", _ADDRESS, _address(tensor, "tensor"), (Int32, pe))
    own = tensor.iterator
    return cute.make_tensor(cute.make_ptr(tensor.element_type, address, own.memspace, assumed_align=own.alignment), tensor.layout)


def get_multicast_tensor(team, tensor):
    raise NvshmemInvalid("nvshmem.core.device.cute.get_multicast_tensor: Weft has no multicast; nvshmemx_mc_ptr is null too")


# ---- Put and get.

def p(dst, src, pe):
    """Puts one value, a number or the first element of a tensor."""
    value = src[0] if isinstance(src, cute.Tensor) else src
    if dst.element_type is Float16:  # passed as the word that it is kept in
        return _call("nvshmem_uint16_p", None, _address(dst, "dst"), (Uint16, Float16(value).bitcast(Uint16)), (Int32, pe))
    return _call(f"nvshmem_{_name_of(dst, NUMBERS, 'p')}_p", None, _address(dst, "dst"), (dst.element_type, value), (Int32, pe))


def g(src, pe):
    """Gets one value."""
    if src.element_type is Float16:
        return _call("nvshmem_uint16_g", Uint16, _address(src, "src"), (Int32, pe)).bitcast(Float16)
    return _call(f"nvshmem_{_name_of(src, NUMBERS, 'g')}_g", src.element_type, _address(src, "src"), (Int32, pe))


def _copies(call, scope=""):
    def copy(dst, src, pe):
        _call(scoped(call, scope), None, *_addresses(dst=dst, src=src), _bytes(dst, _count(dst, src)), (Int32, pe))
    return copy


def _copies_and_signals(call, scope=""):
    """Then the update of the signal of `pe` by a SignalOp: who sees it sees the data."""
    def copy(dst, src, signal_var, signal_val, signal_op, pe):
        _call(scoped(call, scope), None, *_addresses(dst=dst, src=src), _bytes(dst, _count(dst, src)), _signal(signal_var),
              (Uint64, signal_val), (Int32, int(signal_op)), (Int32, pe))
    return copy


put, put_warp, put_block = (_copies("putmem", scope) for scope in ("", "warp", "block"))
put_nbi, put_nbi_warp, put_nbi_block = (_copies("putmem_nbi", scope) for scope in ("", "warp", "block"))
get, get_warp, get_block = (_copies("getmem", scope) for scope in ("", "warp", "block"))
get_nbi, get_nbi_warp, get_nbi_block = (_copies("getmem_nbi", scope) for scope in ("", "warp", "block"))
put_signal, put_signal_warp, put_signal_block = (_copies_and_signals("putmem_signal", scope) for scope in ("", "warp", "block"))
put_signal_nbi, put_signal_nbi_warp, put_signal_nbi_block = (
    _copies_and_signals("putmem_signal_nbi", scope) for scope in ("", "warp", "block"))


# ---- Atomic updates of the first element of a tensor of `pe`.

def _atomic(call, allowed, returns, tensor, pe, *values):
    kind = tensor.element_type
    return _call(f"nvshmem_{_name_of(tensor, allowed, call)}_{call}", kind if returns else None, _address(tensor, "dst"),
                 *((kind, value) for value in values), (Int32, pe))


def _atomic_with_value(call, allowed, returns=False):
    return lambda dst, value, pe: _atomic(call, allowed, returns, dst, pe, value)


def atomic_inc(dst, pe):
    _atomic("atomic_inc", BITS, False, dst, pe)


def atomic_fetch_inc(dst, pe):
    return _atomic("atomic_fetch_inc", BITS, True, dst, pe)


def atomic_fetch(src, pe):
    return _atomic("atomic_fetch", ANY, True, src, pe)


def atomic_compare_swap(dst, cond, value, pe):
    """Sets `value` where the old value is `cond`; returns the old one."""
    return _atomic("atomic_compare_swap", BITS, True, dst, pe, cond, value)


atomic_set = _atomic_with_value("atomic_set", ANY)
atomic_swap = _atomic_with_value("atomic_swap", ANY, True)
atomic_add, atomic_and, atomic_or, atomic_xor = (_atomic_with_value(f"atomic_{one}", BITS) for one in ("add", "and", "or", "xor"))
atomic_fetch_add, atomic_fetch_and, atomic_fetch_or, atomic_fetch_xor = (
    _atomic_with_value(f"atomic_fetch_{one}", BITS, True) for one in ("add", "and", "or", "xor"))


# ---- Collectives.

def _meets(call, scope, returns):
    def meet(team):
        _call(scoped(call, scope), returns, (Int32, team))
    return meet


def _meets_all(call, scope):
    return lambda: _call(scoped(call, scope), None)


def _reduces(call, scope, count_of):
    """`op` of all PEs' elements, as a text: "sum", "prod", "min", "max", and for integers "and", "or", "xor"."""
    def reduce(team, dst, src, op):
        if op not in OPERATIONS:
            raise NvshmemInvalid(f"nvshmem.core.device.cute.{call}: there is no operation {op!r}; there is {', '.join(OPERATIONS)}")
        _call(scoped(f"{_name_of(dst, reduced_by(op), call)}_{op}_{call}", scope), Int32, (Int32, team), *_addresses(dst=dst, src=src),
              (Int64, count_of(dst, src)))
    return reduce


def _collects(scope):
    """All PEs' src one after the other."""
    def fcollect(team, dst, src):
        _call(scoped("fcollectmem", scope), Int32, (Int32, team), *_addresses(dst=dst, src=src), _bytes(src, _count(src)))
    return fcollect


def _exchanges(scope):
    """Part i of src goes to PE i of the team, which has a part for each PE."""
    def alltoall(team, dst, src):
        each = Int64(_count(dst, src)) // Int64(team_n_pes(team))
        _call(scoped("alltoallmem", scope), Int32, (Int32, team), *_addresses(dst=dst, src=src), _bytes(src, each))
    return alltoall


def _broadcasts(scope):
    """src of PE `root` of the team."""
    def broadcast(team, dst, src, root=0):
        _call(scoped("broadcastmem", scope), Int32, (Int32, team), *_addresses(dst=dst, src=src), _bytes(src, _count(dst, src)), (Int32, root))
    return broadcast


barrier, barrier_warp, barrier_block = (_meets("barrier", scope, Int32) for scope in ("", "warp", "block"))
sync, sync_warp, sync_block = (_meets("team_sync", scope, Int32) for scope in ("", "warp", "block"))
barrier_all, barrier_all_warp, barrier_all_block = (_meets_all("barrier_all", scope) for scope in ("", "warp", "block"))
sync_all, sync_all_warp, sync_all_block = (_meets_all("sync_all", scope) for scope in ("", "warp", "block"))
reduce, reduce_warp, reduce_block = (_reduces("reduce", scope, _count) for scope in ("", "warp", "block"))
# This PE gets its share, as many elements as dst has.
reducescatter, reducescatter_warp, reducescatter_block = (
    _reduces("reducescatter", scope, lambda dst, src: _count(dst)) for scope in ("", "warp", "block"))
fcollect, fcollect_warp, fcollect_block = (_collects(scope) for scope in ("", "warp", "block"))
alltoall, alltoall_warp, alltoall_block = (_exchanges(scope) for scope in ("", "warp", "block"))
broadcast, broadcast_warp, broadcast_block = (_broadcasts(scope) for scope in ("", "warp", "block"))
