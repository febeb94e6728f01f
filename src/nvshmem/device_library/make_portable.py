"""Takes from LLVM assembly what would bind it to one compiler: make_portable.py FROM TO.

- Which GPU it was compiled for: functions for different GPUs are not inlined into each other.
- Module flags and the compiler's name: two modules with different flags (nvvm-reflect-ftz, which Triton sets) do not link.
- The list of what must stay: linkers that take only what a kernel needs (--only-needed) would take all of it.
"""
import pathlib
import re
import sys

FOR_ONE_GPU = re.compile(r' "target-(?:cpu|features)"="[^"]*"')
OF_THE_MODULE = re.compile(r"^(?:!llvm\.(?:module\.flags|ident)|@llvm\.(?:compiler\.)?used) = .*\n", re.MULTILINE)


def make_portable(text):
    return OF_THE_MODULE.sub("", FOR_ONE_GPU.sub("", text))


if __name__ == "__main__":
    source, result = map(pathlib.Path, sys.argv[1:])
    result.write_text(make_portable(source.read_text()))
