"""The functions of C, libnvshmem_host: libraries that a program loads (pplx-kernels, for one) call them, and expect that
nvshmem.core.init has begun their job. It is that of `import weft`."""

import ctypes

from . import prefix

_library = None


def begin():
    """Collective. Does nothing where the prefix for NVSHMEM programs is not there."""
    global _library
    path = prefix.library("libweft_nvshmem_host.so.3")
    if path is not None:
        _library = ctypes.CDLL(path)
        _library.nvshmem_init()


def end():
    """Collective."""
    global _library
    if _library is not None:
        _library.nvshmem_finalize()
        _library = None
