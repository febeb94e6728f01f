"""The names of NVSHMEM4Py over weft, for programs that import nvshmem.core. Memory of this PE's GPU, or of the CPU.

    import weft.nvshmem
    weft.nvshmem.install()     # from now on `import nvshmem.core` gives weft.nvshmem.core; nothing is shadowed without it

Names and meanings are those of NVSHMEM4Py's public documentation, 0.3 (docs/NVSHMEM.md says what differs). With
NVSHMEM_HEAP_KIND=SYSMEM memory is that of the CPU, and arrays are numpy's: for tests, and machines without GPUs.

    weft.nvshmem.use_rails()   # the other way round: NVIDIA's NVSHMEM stays, and takes Weft's rails between nodes

Threads: one at a time.
"""

import importlib.abc
import importlib.util
import sys

from ..errors import Error
from .rails import use_rails

__all__ = ["install", "use_rails"]

_MODULES = ("core", "core.collective", "core.direct", "core.init_fini", "core.interop", "core.interop.cupy", "core.interop.torch",
            "core.memory", "core.modules", "core.nvshmem_types", "core.rma", "core.device", "core.device.library")


def install():
    """Makes `import nvshmem.core` give weft.nvshmem.core, in this process. weft.Error if another one is loaded already."""
    from importlib import import_module
    found = {"nvshmem": sys.modules[__name__]} | {f"nvshmem.{name}": import_module(f".{name}", __name__) for name in _MODULES}
    for name, module in found.items():
        if sys.modules.get(name, module) is not module:
            raise Error(f"weft.nvshmem.install: {name} is loaded already; call install before it is imported")
    sys.modules.update(found)
    if not any(isinstance(one, _KernelModules) for one in sys.meta_path):
        sys.meta_path.insert(0, _KernelModules())


class _KernelModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """nvshmem.core.device.numba, .triton and .cute, and nvshmem.core.interop.cute, which are loaded where a program imports them:
    not all have these compilers."""

    def find_spec(self, fullname, path=None, target=None):
        is_ours = fullname.startswith(("nvshmem.core.device.", "nvshmem.core.interop.cute"))
        return importlib.util.spec_from_loader(fullname, self) if is_ours else None

    def create_module(self, spec):
        module = importlib.import_module("weft." + spec.name)
        self._own = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self._own  # importlib has put the other name there
