"""Where the wheel put Weft's library, headers and packages for CMake and pkg-config.

The functions return absolute paths. `python -m weft --help` prints the same for build scripts.
"""

from pathlib import Path


def prefix() -> str:
    """The prefix of the installation: it has bin, include, lib and share."""
    return str(Path(__file__).parent.resolve())


def include_dir() -> str:
    """For the compiler's -I: shmem.h and weft/weft.h are there."""
    return f"{prefix()}/include"


def lib_dir() -> str:
    """For the linker's -L, and for its -rpath."""
    return f"{prefix()}/lib"


def library() -> str:
    """The file for dlopen and ctypes. libweft.so beside it is a text for linkers."""
    return f"{lib_dir()}/libweft.so.0"


def cmake_dir() -> str:
    """For CMake's weft_DIR, so that find_package(weft) finds it."""
    return f"{lib_dir()}/cmake/weft"


def pkg_config_dir() -> str:
    """For PKG_CONFIG_PATH: weft.pc and weft-shmem.pc."""
    return f"{lib_dir()}/pkgconfig"
