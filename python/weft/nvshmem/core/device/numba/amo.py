"""Atomic updates in kernels of numba, of the first element of an array of `pe`."""

from ..names import ANY, BITS
from .calls import INT, NOTHING, POINTER, c_function, device_function, name_of, require_arrays

__all__ = [
    "atomic_add", "atomic_and", "atomic_compare_swap", "atomic_fetch", "atomic_fetch_add", "atomic_fetch_and", "atomic_fetch_inc",
    "atomic_fetch_or", "atomic_fetch_xor", "atomic_inc", "atomic_or", "atomic_set", "atomic_swap", "atomic_xor"]


def _function(call, array, allowed, returns, value_count):
    """`array` and the values are of one type."""
    require_arrays(array=array)
    name = f"nvshmem_{name_of(array, allowed, call)}_{call}"
    return c_function(name, array.dtype if returns else NOTHING, POINTER, *[array.dtype] * value_count, INT)


def _with_value(call, dst, allowed, returns):
    function = _function(call, dst, allowed, returns, 1)
    if returns:
        return lambda dst, value, pe: function((dst, value, pe))

    def implementation(dst, value, pe):
        function((dst, value, pe))
    return implementation


@device_function
def atomic_inc(dst, pe):
    function = _function("atomic_inc", dst, BITS, False, 0)

    def implementation(dst, pe):
        function((dst, pe))
    return implementation


@device_function
def atomic_fetch_inc(dst, pe):
    function = _function("atomic_fetch_inc", dst, BITS, True, 0)
    return lambda dst, pe: function((dst, pe))


@device_function
def atomic_fetch(src, pe):
    function = _function("atomic_fetch", src, ANY, True, 0)
    return lambda src, pe: function((src, pe))


@device_function
def atomic_set(dst, value, pe):
    return _with_value("atomic_set", dst, ANY, False)


@device_function
def atomic_swap(dst, value, pe):
    return _with_value("atomic_swap", dst, ANY, True)


@device_function
def atomic_compare_swap(dst, cond, value, pe):
    """Sets `value` where the old value is `cond`; returns the old one."""
    function = _function("atomic_compare_swap", dst, BITS, True, 2)
    return lambda dst, cond, value, pe: function((dst, cond, value, pe))


@device_function
def atomic_add(dst, value, pe):
    return _with_value("atomic_add", dst, BITS, False)


@device_function
def atomic_fetch_add(dst, value, pe):
    return _with_value("atomic_fetch_add", dst, BITS, True)


@device_function
def atomic_and(dst, value, pe):
    return _with_value("atomic_and", dst, BITS, False)


@device_function
def atomic_fetch_and(dst, value, pe):
    return _with_value("atomic_fetch_and", dst, BITS, True)


@device_function
def atomic_or(dst, value, pe):
    return _with_value("atomic_or", dst, BITS, False)


@device_function
def atomic_fetch_or(dst, value, pe):
    return _with_value("atomic_fetch_or", dst, BITS, True)


@device_function
def atomic_xor(dst, value, pe):
    return _with_value("atomic_xor", dst, BITS, False)


@device_function
def atomic_fetch_xor(dst, value, pe):
    return _with_value("atomic_fetch_xor", dst, BITS, True)
