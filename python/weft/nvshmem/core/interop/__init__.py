"""Symmetric memory as arrays of CuPy and tensors of torch."""

from . import cupy, torch

__all__ = ["cupy", "torch"]
