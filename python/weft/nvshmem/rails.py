"""NVIDIA's NVSHMEM over Weft's rails: its remote transport is replaced, its library and its kernels stay (docs/NVSHMEM.md)."""

import ctypes
import os
import re

from ..errors import Error
from ..paths import lib_dir

INTERFACES = (3, 4, 5, 6, 7)
"""Numbers of NVSHMEM's interface of transports: NVSHMEM 3.4.5 to 3.8.0."""

_TRANSPORT = re.compile(r"/nvshmem_transport_\w+\.so[.\d]*$")
_loaded = []


def use_rails():
    """NVSHMEM, when this process initializes it, takes Weft's rails between nodes. Call it before that, on every PE.

    It loads the files that NVSHMEM opens as its transport `libfabric`, so that the loader takes these, and sets
    NVSHMEM_REMOTE_TRANSPORT. `eval "$(weft-nvshmem --plugin)"` before a program is started does the same for any program. Processes
    that this one starts have to call it themselves. A second call changes nothing.

    Threads: one at a time, and none that initializes NVSHMEM meanwhile.

    Errors: weft.Error, a RuntimeError, when NVSHMEM has loaded a transport already, when NVSHMEM_IB_ENABLE_IBGDA is on (kernels
    then use IBGDA's NICs), and when this installation of Weft lacks the plugin. It cannot see whether an NVSHMEM that
    runs without a remote transport was initialized before. A release of NVSHMEM that Weft does not support is named at NVSHMEM's init.
    """
    lib = os.path.realpath(lib_dir())
    folder = os.path.join(lib, "weft", "nvshmem", "transport")
    stubs = [os.path.join(folder, f"nvshmem_transport_libfabric.so.{number}") for number in INTERFACES]
    for path in (*stubs, os.path.join(lib, "libweft_nvshmem_transport.so")):
        if not os.path.exists(path):
            raise Error(f"weft.nvshmem.use_rails: {path} is missing; install Weft again")
    for path in _mapped_transports():
        if os.path.dirname(path) != folder:
            raise Error(f"weft.nvshmem.use_rails: {path} is loaded already; call use_rails before NVSHMEM is initialized")
    if _is_on(os.environ.get("NVSHMEM_IB_ENABLE_IBGDA", "")):
        raise Error("weft.nvshmem.use_rails: NVSHMEM_IB_ENABLE_IBGDA is on, so kernels would use IBGDA's NICs; unset it")
    if not _loaded:
        _loaded.extend(ctypes.CDLL(path, ctypes.RTLD_LOCAL) for path in stubs)
    os.environ["NVSHMEM_REMOTE_TRANSPORT"] = "libfabric"


def _mapped_transports():
    """The files of NVSHMEM transports in this process, each once."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        paths = {line.split(None, 5)[5].strip() for line in maps if line.count("/")}
    return sorted(path for path in paths if _TRANSPORT.search(path))


def _is_on(value):
    """As NVSHMEM reads a truth value."""
    return value != "" and value[0] not in "0nNfF"
