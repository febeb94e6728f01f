"""NVSHMEM's calls for kernels that Python compiles: `numba` for those of numba-cuda, `triton` for those of Triton, `cute` for
those of CuTe DSL.

Each is imported by its own name, so that programs without these compilers need none of them.
"""
