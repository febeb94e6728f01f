"""What 1,000 init and finalize in one process leave behind: open files, mapped and resident memory, threads, as JSON lines.

    python bench/python_sessions.py [COUNT]
"""
import json
import os
import sys
import time

import weft


def left():
    pages, resident = map(int, open("/proc/self/statm", encoding="utf-8").read().split()[:2])
    return {"files": len(os.listdir("/proc/self/fd")), "threads": len(os.listdir("/proc/self/task")), "mapped_kib": pages * 4,
            "resident_kib": resident * 4}


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    start = time.perf_counter()
    for turn in range(1, count + 1):
        with weft.init():
            array = weft.zeros(1000)
            view = memoryview(array)
            view[0] = 1
            view.release()
        if turn in (1, 10, 100) or turn % 250 == 0:
            print(json.dumps({"sessions": turn, "s": round(time.perf_counter() - start, 2), **left(), "weft": weft.__version__,
                              "date": time.strftime("%Y-%m-%d")}), flush=True)


if __name__ == "__main__":
    main()
