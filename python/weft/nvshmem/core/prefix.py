"""Files of the prefix for NVSHMEM programs (docs/NVSHMEM.md), as weft-nvshmem --prefix finds it."""

import os

from ...paths import lib_dir


def places():
    """Where its libraries may be: in an installation, then in a build folder, whose lib this package reaches by a link."""
    return [os.path.join(lib_dir(), "weft", "nvshmem", "lib"), os.path.normpath(os.path.join(os.path.realpath(lib_dir()), "..", "nvshmem", "lib"))]


def library(name):
    """The path of a library; None where this Weft has none."""
    paths = (os.path.join(place, name) for place in places())
    return next((os.path.realpath(path) for path in paths if os.path.exists(path)), None)
