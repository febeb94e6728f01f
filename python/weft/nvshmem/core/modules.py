"""Machine code that a program loads itself: its kernels need Weft's state before they run.

`module_init` takes a CUmodule, `library_init` a CUlibrary, as numbers or as objects of cuda.bindings or cuda.core. Code without
calls of NVSHMEM is left as it is.
"""

import ctypes

from ...native import core
from .nvshmem_types import NvshmemError, raised_by_nvshmem

__all__ = ["library_finalize", "library_init", "module_finalize", "module_init"]

_VARIABLE = b"weft_device_state_of_module"  # include/weft/device/module.cuh
_SUCCESS, _NOT_FOUND = 0, 500


def module_init(module):
    _give_state("module", module)


def library_init(library):
    _give_state("library", library)


def module_finalize(module):
    """Does nothing; the state goes with the module."""


def library_finalize(library):
    """Does nothing; the state goes with the library."""


def library_of_numba(loaded):
    """What numba-cuda calls when it has loaded a kernel: with an ObjectCode of cuda.core, which is a library, or a module."""
    handle = getattr(loaded, "handle", loaded)
    is_library = "library" in type(handle).__name__.lower() or type(loaded).__name__ == "ObjectCode"
    _give_state("library" if is_library else "module", handle)


def _give_state(kind, loaded):
    driver = ctypes.CDLL("libcuda.so.1")
    find = driver.cuLibraryGetGlobal if kind == "library" else driver.cuModuleGetGlobal_v2
    address, size = ctypes.c_uint64(), ctypes.c_size_t()
    status = find(ctypes.byref(address), ctypes.byref(size), ctypes.c_void_p(_number(loaded)), _VARIABLE)
    if status == _NOT_FOUND:
        return
    with raised_by_nvshmem():
        state = core.device_state()
    if not state:
        raise NvshmemError(f"nvshmem.core.{kind}_init: kernels need nvshmem.core.init first, with symmetric memory of the GPU")
    if status == _SUCCESS and size.value != len(state):
        raise NvshmemError(f"nvshmem.core.{kind}_init: the {kind} was made for another version of Weft (its state has {size.value} "
                           f"bytes, this one's {len(state)}); build or compile it again")
    if status == _SUCCESS:
        status = driver.cuMemcpyHtoD_v2(address, state, size)
    if status != _SUCCESS:
        raise NvshmemError(f"nvshmem.core.{kind}_init: CUDA failed (error {status}); is this a {kind} of the current GPU?")


def _number(loaded):
    handle = getattr(loaded, "handle", loaded)
    return getattr(handle, "value", None) or int(handle)
