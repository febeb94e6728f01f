"""A pipeline without barriers: each PE waits for a signal, adds its number, and passes the array on with a signal.

    $ weft-run -n 4 -- python 13_put_signal.py
    PE 3 has [6. 7. 8.]
"""
import numpy
import weft

with weft.init() as job:
    field, arrived = weft.zeros(3, "float64"), weft.zeros(1, "uint64")
    mine = numpy.asarray(field)  # numpy's view of the symmetric memory
    if job.pe == 0:
        mine[:] = [0, 1, 2]
    else:
        weft.signal_wait_until(arrived, "==", 1)  # the signal is here, so the data is
        mine += job.pe
    if job.pe + 1 < job.pe_count:
        weft.put_signal(field, field, arrived, job.pe + 1)
    else:
        print(f"PE {job.pe} has {mine}")
