"""NVSHMEM's calls in kernels of numba-cuda, under the names of NVSHMEM4Py's documentation.

    import nvshmem.core.device.numba as nvshmem_numba       # after weft.nvshmem.install()

    @cuda.jit
    def shift(dst, src, pe):
        nvshmem_numba.put_block(dst, src, pe)

A kernel that calls them is linked with libnvshmem_device.ltoir and gets its state when it is loaded, so the first launch
comes after nvshmem.core.init.
"""

from . import amo, collective, direct, mem, rma
from .amo import *  # noqa: F403
from .collective import *  # noqa: F403
from .direct import *  # noqa: F403
from .mem import *  # noqa: F403
from .rma import *  # noqa: F403

__all__ = ["amo", "collective", "direct", "mem", "rma", *amo.__all__, *collective.__all__, *direct.__all__, *mem.__all__, *rma.__all__]
