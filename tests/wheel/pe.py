"""A PE in Python, by ctypes alone: each puts its number to the next PE, and prints what it got."""
import ctypes

import weft

library = ctypes.CDLL(weft.library())
library.weft_calloc.restype = ctypes.c_void_p
library.weft_calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
library.weft_put.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
assert library.weft_init() == 0
pe, pe_count = library.weft_pe(), library.weft_pe_count()
number = library.weft_calloc(1, 4)
library.weft_put(number, ctypes.byref(ctypes.c_int(pe)), 4, (pe + 1) % pe_count)
library.weft_barrier_all()
got = ctypes.c_int.from_address(number).value
print(f"PE {pe} of {pe_count} got {got}\n", end="", flush=True)  # one write, so that lines of PEs do not mix
assert got == (pe - 1) % pe_count
assert library.weft_finalize() == 0
