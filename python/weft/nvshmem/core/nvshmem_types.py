"""Enumerations, errors and small objects of nvshmem.core; the numbers are those of <nvshmem.h>."""

from contextlib import contextmanager
from enum import IntEnum
from typing import NamedTuple

from ...errors import Error, InvalidArgument


class NvshmemError(Exception):
    """An operation that failed."""


class NvshmemInvalid(NvshmemError, ValueError):
    """An argument that cannot be used."""


class Teams(IntEnum):
    TEAM_INVALID = -1
    TEAM_WORLD = 0
    TEAM_SHARED = 1
    TEAM_NODE = 2
    TEAM_SAME_MYPE_NODE = 3


class SignalOp(IntEnum):
    SIGNAL_SET = 9
    SIGNAL_ADD = 10


class ComparisonType(IntEnum):
    CMP_EQ = 0
    CMP_NE = 1
    CMP_GT = 2
    CMP_LE = 3
    CMP_LT = 4
    CMP_GE = 5


class InitStatus(IntEnum):
    STATUS_NOT_INITIALIZED = 0
    STATUS_IS_BOOTSTRAPPED = 1
    STATUS_IS_INITIALIZED = 2
    STATUS_LIMITED_MPG = 3
    STATUS_FULL_MPG = 4


class Version(NamedTuple):
    openshmem_spec_version: str
    nvshmem4py_version: str
    libnvshmem_version: str


class NvshmemStream:
    """A stream of any library, or its number, for functions that take a stream."""

    def __init__(self, stream):
        self._stream = stream

    def __cuda_stream__(self):
        if isinstance(self._stream, int):
            return 0, self._stream
        number = getattr(self._stream, "cuda_stream", None)  # torch's
        return (0, number) if number is not None else self._stream.__cuda_stream__()


class UniqueId:
    """What get_unique_id returns. `_data` is its bytes as an array of numpy, for programs that send it by MPI."""

    def __init__(self, data):
        self._data = data

    def __bytes__(self):
        return self._data.tobytes()


@contextmanager
def raised_by_nvshmem():
    """Errors of weft as nvshmem.core's."""
    try:
        yield
    except InvalidArgument as error:
        raise NvshmemInvalid(str(error)) from error
    except Error as error:
        raise NvshmemError(str(error)) from error
