"""This PE's GPU: which one it is, its current stream, and the start of the symmetric heap in its memory."""

import ctypes
import re
import sys

from .errors import Error, InvalidArgument, NoCuda, WrongDevice
from .native import core

_device = None  # the GPU of this PE, once weft_device_init has been called


def device_of(device, name):
    """None for the CPU, else a number; -1 is "cuda", this PE's own."""
    text = str(device)  # torch.device too
    if text == "cpu":
        return None
    found = re.fullmatch(r"cuda(?::(\d+))?", text)
    if not found:
        raise WrongDevice(f"{name}: there is no device {device!r}; give \"cpu\", \"cuda\" or \"cuda:1\"")
    number = -1 if found.group(1) is None else int(found.group(1))
    if core.device_initialized() and number not in (-1, _device):
        raise WrongDevice(f"{name}: this PE uses cuda:{_device}, and a PE has one GPU; give \"cuda\"")
    return number


def initialize(device, name, agree):
    """Starts the symmetric heap on the GPU, once. Collective. Returns its number."""
    global _device
    if core.device_initialized():
        return _device
    note, error, chosen = "cuda", None, device
    try:
        chosen = _choose(device)
        _make_current(chosen, name)
    except Error as raised:
        note, error = f"!{raised}", raised
    agree(name, note, error)
    try:
        core.device_init(chosen)
    except InvalidArgument as error:
        raise NoCuda(str(error).replace("weft.init", name, 1)) from None
    _device = chosen
    return chosen


def _choose(device):
    if device >= 0:
        return device
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return torch.cuda.current_device()
    return core.machine_pe() % max(1, _count())


def _driver():
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise NoCuda(f"weft: no NVIDIA driver was found ({error}); GPU memory needs one, and a GPU") from None
    if status := driver.cuInit(0):
        raise NoCuda(f"weft: the NVIDIA driver does not start (cuInit: {status}); nvidia-smi says more")
    return driver


def _count():
    count = ctypes.c_int(0)
    _driver().cuDeviceGetCount(ctypes.byref(count))
    return count.value


def _make_current(device, name):
    """The device's primary context, as cudaSetDevice would make it current: weft_device_init takes the current GPU."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.set_device(device)
        torch.cuda.synchronize(device)
        return
    driver = _driver()
    handle, context = ctypes.c_int(0), ctypes.c_void_p()
    if driver.cuDeviceGet(ctypes.byref(handle), device):
        raise NoCuda(f"{name}: there is no cuda:{device}; this machine has {_count()} GPUs")
    if status := (driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle) or driver.cuCtxSetCurrent(context)):
        raise NoCuda(f"{name}: cuda:{device} cannot be used (CUDA error {status}); nvidia-smi says more")


def number():
    """This PE's GPU; None before the symmetric heap starts there."""
    return _device


def current_stream(device):
    """The number of the stream for an operation that names none: torch's current one, or the default stream."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return 0
    # Without the Stream object around it, whose making takes the CPU longer than the rest of a put.
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return torch.cuda.current_stream(device).cuda_stream if raw is None else raw(device)


core.set_current_stream(current_stream)
