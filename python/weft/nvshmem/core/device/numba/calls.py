"""How functions of this package become calls of the device library in kernels of numba-cuda.

numba's declare_device gives functions numba's own calling convention unless it is told otherwise, and NVSHMEM's have C's;
so calls are made here, one LLVM call each, and bring the library and what gives a loaded kernel its state.
"""

import functools

try:
    from llvmlite import ir
    from numba.cuda import LTOIR, cgutils, types
    from numba.cuda.core.errors import TypingError
    from numba.cuda.extending import intrinsic, overload
    from numba.cuda.np.arrayobj import make_array, populate_array
except ImportError as error:
    raise ImportError(f"nvshmem.core.device.numba needs numba-cuda 0.22 or later, and a numba that it works with: {error}") from error

from ...modules import library_of_numba
from ...nvshmem_types import NvshmemInvalid
from ..library import device_library

POINTER = types.voidptr
INT = types.int32
SIZE = types.uint64
NOTHING = types.void

# Elements as NVSHMEM's names spell them. Half-precision ones pass as words of the same bits, which
# is how numba keeps them.
_NAMES = {types.int8: "int8", types.int16: "int16", types.int32: "int32", types.int64: "int64", types.uint8: "uint8", types.uint16: "uint16",
          types.uint32: "uint32", types.uint64: "uint64", types.float16: "half", types.float32: "float", types.float64: "double"}


def device_function(typing):
    """A function for kernels. `typing` takes numba's types of the arguments and returns the function that is compiled."""
    @functools.wraps(typing)
    def only_in_kernels(*_arguments, **_named):
        raise NvshmemInvalid(f"nvshmem.core.device.numba.{typing.__name__} is for kernels of numba.cuda.jit; on the host there is "
                             f"nvshmem.core")
    overload(only_in_kernels)(typing)
    return only_in_kernels


@functools.cache
def _library():
    with open(device_library("ltoir"), "rb") as file:
        return LTOIR(file.read(), name="libnvshmem_device", setup_callback=library_of_numba)


@functools.cache
def c_function(name, result, *parameters):
    """What calls the C function `name`: in a kernel it takes one tuple of arrays, of which the address is passed, and numbers."""
    @intrinsic
    def call(typingctx, arguments):
        def code(context, builder, signature, values):
            given = zip(cgutils.unpack_tuple(builder, values[0]), signature.args[0], parameters, strict=True)
            passed = [_passed(context, builder, *one) for one in given]
            got = call_c(context, builder, name, result(*parameters), passed)
            return context.get_dummy_value() if result is NOTHING else got
        return result(arguments), code
    return call


def call_c(context, builder, name, signature, passed):
    """One call in LLVM, and the library for it."""
    returned = ir.VoidType() if signature.return_type is NOTHING else context.get_value_type(signature.return_type)
    kind = ir.FunctionType(returned, [context.get_value_type(one) for one in signature.args])
    context.active_code_library.add_linking_file(_library())
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), passed)


def _passed(context, builder, value, given, wanted):
    if isinstance(given, types.Array):
        return builder.bitcast(make_array(given)(context, builder, value).data, context.get_value_type(wanted))
    return context.cast(builder, value, given, wanted)


@intrinsic
def first_of(typingctx, array):
    """The first element."""
    def code(context, builder, signature, values):
        return context.unpack_value(builder, array.dtype, make_array(array)(context, builder, values[0]).data)
    return array.dtype(array), code


def require_arrays(**given):
    """Contiguous ones."""
    for name, kind in given.items():
        if not isinstance(kind, types.Array):
            raise TypingError(f"nvshmem.core.device.numba: {name} is {kind}, not an array")
        if kind.layout not in ("C", "F"):
            raise TypingError(f"nvshmem.core.device.numba: {name} has gaps, and calls take contiguous arrays")


def require_same(**given):
    """Contiguous arrays of one element type."""
    require_arrays(**given)
    if len({kind.dtype for kind in given.values()}) != 1:
        raise TypingError("nvshmem.core.device.numba: " + ", ".join(f"{name} has {kind.dtype}" for name, kind in given.items()) + ", not the same")


def name_of(array, allowed, call):
    """The name of the array's elements in NVSHMEM's functions."""
    found = _NAMES.get(array.dtype)
    if found not in allowed:
        raise TypingError(f"nvshmem.core.device.numba.{call}: there is none for {array.dtype}; there is for {', '.join(allowed)}")
    return found
