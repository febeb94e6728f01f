"""The module of C++, weft._weft, or one exception that says why it cannot be loaded."""

import os
import sys
import sysconfig

from .errors import Error, WrongVersion
from .paths import library
from .version import VERSION


def _load():
    if sys.version_info < (3, 11):
        raise Error(f"weft: this is Python {sys.version_info[0]}.{sys.version_info[1]}; `import weft` communicates from "
                    "Python 3.11 on (the commands, headers and libraries of the wheel work with this one)")
    try:
        from . import _weft
    except ImportError as error:
        if sysconfig.get_config_var("Py_GIL_DISABLED") and "cannot import name '_weft'" in str(error):
            raise Error("weft: this is a free-threaded Python, and the package has no module for it: use the Python with a "
                        "GIL, or build one with `scripts/build_wheel --free-threaded PYTHON` (docs/PYTHON.md)") from None
        if "undefined symbol" in str(error):
            raise WrongVersion(f"weft: another libweft than this package's {VERSION} was loaded: {error}; look at "
                               "LD_LIBRARY_PATH and LD_PRELOAD, and for a second Weft in this process") from None
        if "_nb_backend" in str(error):
            raise Error(f"weft: the wheel has no part for Python {sys.version_info[0]}.{sys.version_info[1]} "
                        f"({error}); install a newer Weft") from None
        raise
    _refuse_another_library(_weft.library_path())
    return _weft


def _refuse_another_library(loaded):
    """LD_LIBRARY_PATH, LD_PRELOAD or another package of this process may have brought a libweft of their own."""
    own = library()
    if os.path.exists(own) and os.path.exists(loaded) and not os.path.samefile(own, loaded):
        raise WrongVersion(f"weft: {loaded} was loaded, and this package {VERSION} works with {own} alone; look at "
                           "LD_LIBRARY_PATH and LD_PRELOAD, and for a second Weft in this process")


core = _load()
