"""The device library that kernels are linked with, in the prefix for NVSHMEM programs."""

from .. import prefix
from ..nvshmem_types import NvshmemError

_WHY = {"bc": "it is built where clang 19 or later and nvcc are found", "ltoir": "it is built where nvcc is found"}


def device_library(kind):
    """The path of libnvshmem_device.`kind`: "bc" is LLVM bitcode, "ltoir" is for nvJitLink."""
    name = f"libnvshmem_device.{kind}"
    path = prefix.library(name)
    if path is None:
        raise NvshmemError(f"nvshmem.core.device: there is no {name} in {' or '.join(prefix.places())}; {_WHY[kind]}, and not in a "
                           "wheel without CUDA (docs/NVSHMEM.md)")
    return path
