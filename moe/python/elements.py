"""Arrays as the exchange sees them: address, element type, shape; and arrays over the exchange's memory."""

import typing

import numpy

from ..errors import InvalidArgument, NotContiguous, WrongDevice, WrongDtype, WrongShape
from ..native import core


class LayoutFacts(typing.NamedTuple):
    """As weft/moe/layouts.hpp, from which it comes, explains."""
    number: int
    is_by_rank: bool
    is_in_place: bool
    is_padded: bool


# The values of the enumerations of weft/moe.h: weft_moe_type (and what numpy shows of them), and
# others.
TYPES = {"bfloat16": 1, "float16": 2, "float32": 3, "float64": 4, "fp8_e4m3": 5, "fp8_e5m2": 6, "nvfp4": 7}
SCALES = {"none": 0, "float32": 1, "ue8m0": 2, "nvfp4": 3}
# By name. To add one: moe/docs/DEVELOPING.md.
LAYOUTS = {name: LayoutFacts(*facts) for name, *facts in core.moe_layouts()}
PRECISIONS = {"reduced": 1, "exact": 2, "lanes": 3, "fp8": 4}
STEPS = {"dispatch": 1, "combine": 2}
OF_DISPATCH, GIVEN, UNWEIGHTED = 1, 2, 3  # weft_moe_weighting

_RAW = {"bfloat16": "uint16", "fp8_e4m3": "uint8", "fp8_e5m2": "uint8", "nvfp4": "uint8"}
# Names that numpy, ml_dtypes and torch give element types.
_NAMES = {"float8_e4m3fn": "fp8_e4m3", "float8_e5m2": "fp8_e5m2", "float4_e2m1fn_x2": "nvfp4", "uint16": "bfloat16",
          "int16": "bfloat16"}
_TORCH = {"fp8_e4m3": "float8_e4m3fn", "fp8_e5m2": "float8_e5m2", "nvfp4": "uint8"}


def choice(value, choices, argument):
    """The number behind a name, or an error that lists the names."""
    name = value if isinstance(value, str) else getattr(value, "name", None) or str(value).removeprefix("torch.")
    name = _NAMES.get(name, name)
    if name not in choices:
        raise InvalidArgument(f"weft.moe: {argument} is {value!r}; give one of {', '.join(choices)}")
    return name


class Given:
    """An array of the caller, which it keeps alive."""

    def __init__(self, array, argument):
        self.array, self.argument = array, argument
        self.is_tensor = hasattr(array, "data_ptr")
        if self.is_tensor:
            self._look_at_tensor()
        elif isinstance(array, numpy.ndarray):
            self.shape, self.dtype = array.shape, array.dtype.name
            self.address, is_contiguous = array.ctypes.data, array.flags.c_contiguous
            self._require(is_contiguous, "numpy.ascontiguousarray")
            if not array.dtype.isnative:
                raise WrongDtype(f"weft.moe: {argument} has the other byte order ({array.dtype.str}); convert it: "
                                 f"{argument}.astype({self.dtype!r})")
        else:
            raise WrongDtype(f"weft.moe: {argument} is a {type(array).__name__}; give a numpy array or a CPU tensor")

    def _look_at_tensor(self):
        tensor = self.array
        if tensor.device.type != "cpu":
            raise WrongDevice(f"weft.moe: {self.argument} is on {tensor.device}; the exchange is on the CPU: {self.argument}.cpu()")
        self.shape, self.dtype = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
        self.address = tensor.data_ptr()
        self._require(tensor.is_contiguous(), "Tensor.contiguous")

    def _require(self, is_contiguous, remedy):
        if not is_contiguous:
            raise NotContiguous(f"weft.moe: {self.argument} is a view with gaps; copy it first ({remedy})")

    def type_for(self, payload):
        """The name in TYPES. Bytes are taken for codes of the payload."""
        name = _NAMES.get(self.dtype, self.dtype)
        if self.dtype in ("uint8", "int8") and payload in _RAW and _RAW[payload] == "uint8":
            name = payload
        if name not in TYPES:
            raise WrongDtype(f"weft.moe: {self.argument} is of {self.dtype}; give {payload}"
                             + (" (as uint16)" if payload == "bfloat16" and not self.is_tensor else ""))
        return name

    def require_shape(self, shape, names):
        if self.shape != tuple(shape):
            raise WrongShape(f"weft.moe: {self.argument} has the shape {self.shape}, and {names} = {tuple(shape)} is needed")


def converted(array, dtype, argument):
    """A contiguous numpy array of this dtype, copied only where needed."""
    if array is None:
        return None
    if hasattr(array, "data_ptr"):
        if array.device.type != "cpu":
            raise WrongDevice(f"weft.moe: {argument} is on {array.device}; the exchange is on the CPU: {argument}.cpu()")
        array = array.detach().numpy()
    if not isinstance(array, numpy.ndarray):
        raise WrongDtype(f"weft.moe: {argument} is a {type(array).__name__}; give a numpy array or a CPU tensor")
    if array.dtype.kind not in ("iu" if numpy.dtype(dtype).kind == "i" else "fiu"):
        raise WrongDtype(f"weft.moe: {argument} is of {array.dtype}; give {dtype}")
    return numpy.ascontiguousarray(array, dtype)


def like(view, type_name, given_dtype, is_tensor):
    """A view of raw numpy memory as the caller's library and type show it."""
    if not is_tensor:
        if type_name in _RAW and given_dtype is not None and given_dtype.itemsize == view.dtype.itemsize:
            return view.view(given_dtype)
        return view
    import torch
    if type_name == "bfloat16":
        return torch.from_numpy(view.view("int16")).view(torch.bfloat16)
    tensor = torch.from_numpy(view)
    return tensor.view(getattr(torch, _TORCH[type_name])) if type_name in _TORCH else tensor


def numpy_dtype(type_name):
    return numpy.dtype(_RAW.get(type_name, type_name))


class Held:
    """Memory of the exchange while a view of it lives: numpy keeps it as the base of its views."""

    def __init__(self, address, count, owner):
        self._owner = owner
        self.__array_interface__ = {"data": (address, False), "shape": (count,), "typestr": "|u1", "version": 3}

    def view(self, address, shape, dtype, row_stride=None):
        """Of [..., values]: all but the last axis count rows, `row_stride` bytes apart."""
        dtype = numpy.dtype(dtype)
        base = numpy.asarray(self)
        strides = [dtype.itemsize]
        step = row_stride if row_stride is not None else shape[-1] * dtype.itemsize
        for extent in reversed(shape[1:-1]):
            strides.insert(0, step)
            step *= extent
        strides.insert(0, step)
        if 0 in shape:
            return numpy.empty(shape, dtype)
        return numpy.ndarray(shape, dtype, base, address - base.ctypes.data, strides[-len(shape):] if len(shape) > 1 else strides[-1:])
