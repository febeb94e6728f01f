"""How NVSHMEM spells elements, operations and scopes in the names of its calls, for the modules of numba and of CuTe DSL."""

BITS = ("int32", "int64", "uint32", "uint64")  # that atomics add to
ANY = (*BITS, "float", "double")  # that they fetch and set
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = (*INTEGERS, "float", "double")

_BIT_OPERATIONS = ("and", "or", "xor")
OPERATIONS = ("sum", "prod", "min", "max", *_BIT_OPERATIONS)


def reduced_by(operation):
    """Elements that a reduction by one of OPERATIONS takes."""
    return INTEGERS if operation in _BIT_OPERATIONS else (*NUMBERS, "half")


def scoped(call, scope):
    """As NVSHMEM names calls of threads (""), and those of warps and blocks, which are its own."""
    return f"nvshmemx_{call}_{scope}" if scope else f"nvshmem_{call}"
