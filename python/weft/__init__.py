"""Weft for Python: one-sided communication over symmetric arrays, between the processes (PEs) of a job.

    import numpy, weft

    with weft.init() as job:
        inbox = weft.zeros(4, "int64")
        right = (job.pe + 1) % job.pe_count
        weft.put(inbox, numpy.full(4, job.pe), right)
        weft.barrier_all()
        print(job.pe, "got", numpy.asarray(inbox))

Start it as `weft-run -n 4 -- python program.py`, or with torchrun, mpirun or srun. docs/PYTHON.md is the guide.

Terms: a PE is a process of the job. A symmetric array exists on every PE, with the same shape; `put` writes into that
of another PE, `get` reads it. A put is complete when its source may be reused, and visible when the target may read it.

Threads: any thread may call any function between init and finalize, and the GIL is released while one waits. Collective
functions (marked so) are called by one thread of each PE, in the same order on all PEs.

Errors: every function raises weft.Error or a class under it (weft.errors), whose text says what to do.

This module imports neither numpy nor torch. What build scripts ask for is here too: prefix, include_dir, lib_dir.
"""

from .errors import (
    Error, Forked, Freed, InvalidArgument, Mismatch, NoCuda, NotContiguous, NotInitialized, NoTorch, NotMapped,
    NotSymmetric, OutOfMemory, PeerLost, Timeout, WrongDevice, WrongDtype, WrongShape, WrongVersion)
from .paths import cmake_dir, include_dir, lib_dir, library, pkg_config_dir, prefix
from .version import VERSION as __version__

# What needs the module of C++, by the file it stands in: loaded when it is first used, so that
# `python -m weft` and the commands work with any Python.
_ORIGINS = {
    "job": ("Job", "finalize", "global_exit", "init", "initialized", "node_count", "node_index", "node_of", "pe",
            "pe_count", "unique_id"),
    "arrays": ("empty", "free", "is_mapped", "register", "unregister", "zeros"),
    "operations": (
        "atomic_add", "atomic_and", "atomic_compare_swap", "atomic_fetch", "atomic_fetch_add", "atomic_fetch_and",
        "atomic_fetch_inc", "atomic_fetch_or", "atomic_fetch_xor", "atomic_inc", "atomic_or", "atomic_set",
        "atomic_swap", "atomic_xor", "barrier_all", "fence", "get", "get_nbi", "iget", "iput", "put", "put_nbi", "put_signal",
        "put_signal_nbi", "putv", "putv_nbi", "putv_signal", "putv_signal_nbi", "quiet", "signal_fetch", "signal_post", "signal_wait_until", "sync_all", "wait_until_all",
        "wait_until_any", "wait_until_some", "Array", "Context", "Team", "node", "world"),
}
_WHERE = {name: module for module, names in _ORIGINS.items() for name in names}

__all__ = [
    "Error", "Forked", "Freed", "InvalidArgument", "Mismatch", "NoCuda", "NotContiguous", "NotInitialized", "NoTorch",
    "NotMapped", "NotSymmetric", "OutOfMemory", "PeerLost", "Timeout", "WrongDevice", "WrongDtype", "WrongShape",
    "WrongVersion", "__version__", "cmake_dir", "include_dir", "lib_dir", "library", "pkg_config_dir", "prefix",
    *_WHERE]


def __getattr__(name):
    from importlib import import_module
    if name in _WHERE:
        value = getattr(import_module(f".{_WHERE[name]}", __name__), name)
        globals()[name] = value  # the next use finds it at once
        return value
    if name in ("torch", "moe", "doctor"):
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module 'weft' has no attribute '{name}'")


def __dir__():
    return sorted({*globals(), *_WHERE, "moe", "torch"})
