"""Symmetric arrays from Python: each PE writes its number into the next one's array, and reads them all.

    $ weft-run -n 4 -- python 12_symmetric_arrays.py
    PE 0 got [3 3 3]
    PE 1 got [0 0 0]
    PE 2 got [1 1 1]
    PE 3 got [2 2 2]
    PE 0 reads [2 2 2] of PE 3
"""
import numpy
import weft

with weft.init() as job:
    inbox = weft.zeros(3, "int64")  # the same on every PE
    right = (job.pe + 1) % job.pe_count
    weft.put(inbox, numpy.full(3, job.pe), right)
    weft.barrier_all()  # all puts are there
    print(f"PE {job.pe} got {numpy.asarray(inbox)}\n", end="", flush=True)
    if job.pe == 0:
        copy = numpy.empty(3, "int64")
        weft.get(copy, inbox, job.pe_count - 1)
        print(f"PE 0 reads {copy} of PE {job.pe_count - 1}\n", end="", flush=True)
