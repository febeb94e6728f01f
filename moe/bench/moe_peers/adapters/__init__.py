"""One file for each library; base.py says what each has."""

import importlib

NAMES = {
    "weft": ("weft_moe", "Adapter"),
    "weft-rank": ("weft_moe", "RankMajor"),
    "weft-rank-fp8": ("weft_moe", "RankMajorFp8"),
    "weft-in-place": ("weft_moe", "InPlace"),
    "weft-in-place-fp8": ("weft_moe", "InPlaceFp8"),
    "weft-deep-ep": ("weft_deep_ep", "Adapter"),
    "uccl": ("uccl_ep", "Adapter"),
    "nccl-ep": ("nccl_ep", "Adapter"),
    "nccl-ep-rank": ("nccl_ep", "RankMajor"),
    "flashinfer": ("flashinfer_moe", "Adapter"),
    "flashinfer-in-place": ("flashinfer_moe", "InPlace"),
    "torch-alltoall": ("torch_alltoall", "Adapter"),
    "torch-vdev": ("torch_vdev", "Adapter"),
    "torch-gather": ("torch_gather", "Adapter"),
}


def load(name):
    """The class. Imports the library."""
    module, attribute = NAMES[name]
    return getattr(importlib.import_module(f"adapters.{module}"), attribute)
