"""A shared counter: PEs take the next piece of work by an atomic on PE 0, and add up what they found.

    $ weft-run -n 3 -- python 14_work_queue.py
    1059 primes below 8500
"""
import numpy
import weft

PIECES, SIZE = 17, 500


def primes_in(start):
    numbers = range(max(2, start), start + SIZE)
    return sum(all(number % divisor for divisor in range(2, int(number**0.5) + 1)) for number in numbers)


with weft.init() as job:
    next_piece, found = weft.zeros(1, "int64"), weft.zeros(1, "int64")
    while (piece := weft.atomic_fetch_inc(next_piece, 0)) < PIECES:
        weft.atomic_add(found, primes_in(piece * SIZE), 0)
    weft.barrier_all()
    if job.pe == 0:
        print(f"{numpy.asarray(found)[0]} primes below {PIECES * SIZE}")
