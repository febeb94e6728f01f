"""Set-up, in three ways, and its end."""

import os

from ... import _cuda, arrays, job
from . import host_library
from .nvshmem_types import InitStatus, NvshmemInvalid, UniqueId, Version, raised_by_nvshmem

_ID_BYTES = 256
_device = "cuda"  # of symmetric memory, for weft


def init(device=None, uid=None, rank=None, nranks=None, mpi_comm=None, initializer_method=""):
    """Joins the job. Collective. `device` is a Device of cuda.core, or a number: this PE's GPU.

    initializer_method: "mpi" and "emulated_mpi" take `mpi_comm` (a communicator of mpi4py, MPI.COMM_WORLD by default);
    "uid" takes `uid`, the same on all, `rank` and `nranks`.
    """
    global _device
    arguments = _arguments(initializer_method, uid, rank, nranks, mpi_comm)
    _device = _device_of(device)
    with raised_by_nvshmem():
        job.init(**arguments)
        if _device != "cpu":
            name = "nvshmem.core.init"
            _cuda.initialize(_cuda.device_of(_device, name), name, arrays._agree)
    host_library.begin()


def finalize():
    """Leaves the job. Collective. Frees what was not freed."""
    host_library.end()
    with raised_by_nvshmem():
        job.finalize()


def init_status():
    """An InitStatus: initialized between init and finalize."""
    return InitStatus.STATUS_IS_INITIALIZED if job.initialized() else InitStatus.STATUS_NOT_INITIALIZED


def get_unique_id(empty=False):
    """An id for init; `empty`, one to receive it in."""
    import numpy
    data = bytes(_ID_BYTES) if empty else job.unique_id()
    return UniqueId(numpy.frombuffer(bytearray(data), numpy.uint8))


def get_version():
    return Version("1.3", "0.3.0", "3.6.5")


def device():
    """Where symmetric memory is: "cpu", "cuda", or "cuda:1"."""
    return _device


def _arguments(method, uid, rank, nranks, mpi_comm):
    if method in ("mpi", "emulated_mpi"):
        if mpi_comm is None:
            from mpi4py import MPI
            mpi_comm = MPI.COMM_WORLD
        return {"group": mpi_comm}
    if method != "uid":
        raise NvshmemInvalid(f"nvshmem.core.init: initializer_method is {method!r}; it is \"uid\", \"mpi\" or \"emulated_mpi\"")
    if uid is None or rank is None or nranks is None:
        raise NvshmemInvalid("nvshmem.core.init: initializer_method \"uid\" needs uid, rank and nranks")
    return {"pe": rank, "pe_count": nranks, "unique_id": bytes(uid)}


def _device_of(given):
    if os.environ.get("NVSHMEM_HEAP_KIND", "").upper() == "SYSMEM":
        return "cpu"
    if given is None:
        return "cuda"
    if hasattr(given, "set_current"):
        given.set_current()
    return f"cuda:{getattr(given, 'device_id', given)}"
