"""A PE of a job out of the wheel alone, without numpy: each puts its number to the next PE, and prints what it got."""
import weft

with weft.init() as job:
    number = weft.zeros(1, "int32")
    mine = weft.empty(1, "int32")
    memoryview(mine)[0] = job.pe
    weft.put(number, mine, (job.pe + 1) % job.pe_count)
    weft.barrier_all()
    got = memoryview(number)[0]
    print(f"PE {job.pe} of {job.pe_count} got {got}\n", end="", flush=True)
    assert got == (job.pe - 1) % job.pe_count
