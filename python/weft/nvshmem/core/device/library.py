"""The device library that kernels are linked with, in the prefix for NVSHMEM programs."""

import os

from ....paths import lib_dir
from ..nvshmem_types import NvshmemError

_WHY = {"bc": "it is built where clang 19 or later and nvcc are found", "ltoir": "it is built where nvcc is found"}


def device_library(kind):
    """The path of libnvshmem_device.`kind`: "bc" is LLVM bitcode, "ltoir" is for nvJitLink."""
    name = f"libnvshmem_device.{kind}"
    # An installation, then a build folder, whose lib this package reaches by a link.
    places = (os.path.join(lib_dir(), "weft", "nvshmem", "lib"), os.path.join(os.path.realpath(lib_dir()), "..", "nvshmem", "lib"))
    for place in places:
        path = os.path.join(place, name)
        if os.path.exists(path):
            return os.path.realpath(path)
    raise NvshmemError(f"nvshmem.core.device: there is no {name} in {' or '.join(map(os.path.normpath, places))}; {_WHY[kind]}, "
                       "and not in a wheel without CUDA (docs/NVSHMEM.md)")
