"""nvshmem.core: set-up, symmetric memory, put and get, signals, collectives. See weft.nvshmem."""

from . import collective, direct, init_fini, interop, memory, modules, nvshmem_types, rma
from .collective import (
    alltoall, barrier, barrier_all, broadcast, collective_on_buffer, fcollect, reduce, reducescatter, sync, sync_all)
from .direct import my_pe, n_pes, team_my_pe, team_n_pes
from .init_fini import finalize, get_unique_id, get_version, init, init_status
from .interop.cupy import (
    array, array_get_buffer, bytearray, free_array, get_multicast_array, get_peer_array, register_external_array,
    unregister_external_array)
from .interop.torch import (
    bytetensor, free_tensor, get_multicast_tensor, get_peer_tensor, register_external_tensor, tensor, tensor_get_buffer,
    unregister_external_tensor)
from .memory import buffer, free, get_peer_buffer
from .modules import library_finalize, library_init, module_finalize, module_init
from .nvshmem_types import (
    ComparisonType, InitStatus, NvshmemError, NvshmemInvalid, NvshmemStream, SignalOp, Teams, Version)
from .rma import get, put, put_signal, quiet, signal_op, signal_wait

__all__ = [
    "ComparisonType", "InitStatus", "NvshmemError", "NvshmemInvalid", "NvshmemStream", "SignalOp", "Teams", "Version",
    "alltoall", "array", "array_get_buffer", "barrier", "barrier_all", "broadcast", "buffer", "bytearray", "bytetensor",
    "collective", "collective_on_buffer", "direct", "fcollect", "finalize", "free", "free_array", "free_tensor", "get",
    "get_multicast_array", "get_multicast_tensor", "get_peer_array", "get_peer_buffer", "get_peer_tensor", "get_unique_id",
    "get_version", "init", "init_fini", "init_status", "interop", "library_finalize", "library_init", "memory", "module_finalize",
    "module_init", "modules", "my_pe", "n_pes", "nvshmem_types", "put", "put_signal", "quiet", "reduce", "reducescatter", "register_external_array", "register_external_tensor", "rma",
    "signal_op", "signal_wait", "sync", "sync_all", "team_my_pe", "team_n_pes", "tensor", "tensor_get_buffer",
    "unregister_external_array", "unregister_external_tensor"]
