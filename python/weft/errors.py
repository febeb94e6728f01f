"""What Weft raises. Every class is a weft.Error, and also the built-in class that Python programs expect."""


class Error(RuntimeError):
    """An error of Weft. Its text says what happened, to what, and what to do."""


class InvalidArgument(Error, ValueError):
    """An argument that cannot be used, for example a PE that does not exist."""


class NotSymmetric(InvalidArgument):
    """Memory that only this PE knows, where memory of every PE is needed."""


class NotContiguous(InvalidArgument):
    """A view whose elements do not follow each other."""


class WrongDtype(InvalidArgument, TypeError):
    """An element type that does not fit the other array, or the operation."""


class WrongShape(InvalidArgument):
    """A number of elements that does not fit the other array, or the operation."""


class WrongDevice(InvalidArgument):
    """Memory of a CPU where that of a GPU is needed, or of another GPU; or a stream of another GPU."""


class NotMapped(InvalidArgument):
    """Memory of a PE that is not mapped here: it is on another node."""


class Freed(InvalidArgument):
    """An array after weft.free, or after weft.finalize."""


class NotInitialized(Error):
    """A call before weft.init, or after weft.finalize."""


class Forked(NotInitialized):
    """A call in a process that was forked from a PE."""


class PeerLost(Error):
    """A PE has died, or cannot be reached. It stays lost."""


class OutOfMemory(Error, MemoryError):
    """The symmetric heap has no room; WEFT_HEAP_SIZE and WEFT_DEVICE_HEAP_MAX set its size."""


class Mismatch(Error):
    """PEs called one collective function with different arguments."""


class Timeout(Error, TimeoutError):
    """PEs did not take part in time."""


class WrongVersion(Error, ImportError):
    """The package and the library that it loaded are of different versions."""


class NoCuda(Error):
    """GPU memory was asked for, and there is no GPU, no driver, or no CUDA in this build of Weft."""


class NoTorch(Error, ImportError):
    """weft.torch needs torch, which is not installed."""
