"""python -m weft.nvshmem: where the prefix for NVSHMEM programs is; the options are those of the command weft-nvshmem."""

from ..programs import weft_nvshmem

if __name__ == "__main__":
    weft_nvshmem()
