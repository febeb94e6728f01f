"""Takes from LLVM assembly what would bind it to one compiler: make_portable.py FROM TO.

- Which GPU it was compiled for: functions for different GPUs are not inlined into each other.
- Module flags and the compiler's name: two modules with different flags (nvvm-reflect-ftz, which Triton sets) do not link.
- Where its source lay on the machine that built it.
- The alignment of functions, which C++ gives methods: libNVVM, which CuTe DSL compiles with, refuses it.
- The list of what must stay: linkers that take only what a kernel needs (--only-needed) would take all of it.
- Structs as arguments of the library's own functions (byval): with 32-bit pointers to local memory, as Triton has them, LLVM of
  Triton 3.6 ends with an assertion. The caller's copy is passed by its address; a function that changes its argument makes
  one of its own. Such a call is no tail call: "tail" promises that the called function reads no local memory of its caller, so
  compilers leave out what was stored there.
"""
import pathlib
import re
import sys

FOR_ONE_GPU = re.compile(r' "target-(?:cpu|features)"="[^"]*"')
SOURCE = re.compile(r'^source_filename = ".*"$', re.MULTILINE)
OF_THE_MODULE = re.compile(r"^(?:!llvm\.(?:module\.flags|ident)|@llvm\.(?:compiler\.)?used) = .*\n", re.MULTILINE)
# Of the function itself, which stands after the parameters.
ALIGNMENT = re.compile(r"^(define [^\n]*\)[^()\n]*) align \d+(?= *(?:\w+[^()\n]*)?\{$)", re.MULTILINE)


# Names of NVSHMEM's keep their arguments as C has them.
FUNCTION = re.compile(r"^define [^@\n]*@(?!nvshmem)[^\n]*\bbyval\([^\n]*\{\n(?:.*\n)*?\}\n", re.MULTILINE)
CALL = re.compile(r"^( .*?)(?:\btail )?(\bcall [^@\n]*@(?!nvshmem).*\bbyval\(.*)$", re.MULTILINE)
BY_VALUE = re.compile(r'([^,(]*)\bbyval\((%(?:"[^"]*"|[\w.]+))\) (align \d+)([^,]*?) (%[\w.]+)(?=[,)])')
COPY = """  {copy} = alloca {type}, {align}
  call void @llvm.memcpy.p0.p0.i64(ptr {align} {copy}, ptr {align} {name}, i64 ptrtoint (ptr getelementptr ({type}, ptr null, i32 1) to i64), i1 false)
"""


def without_by_value(text):
    text = FUNCTION.sub(lambda found: _by_address(found.group()), text)
    text = CALL.sub(lambda found: found[1] + BY_VALUE.sub(r"\1\3\4 \5", found[2]), text)
    if "@llvm.memcpy.p0.p0.i64(" in text and not re.search(r"^declare void @llvm\.memcpy\.p0\.p0\.i64\(", text, re.MULTILINE):
        text += "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
    return text


def _by_address(function):
    head, _, body = function.partition("\n")
    copies = ""
    for before, kind, align, after, name in BY_VALUE.findall(head):
        if "readonly" not in before + after:
            copy = f"%copy_of_{name[1:]}"
            body = re.sub(re.escape(name) + r"(?![\w.])", copy, body)
            copies += COPY.format(copy=copy, type=kind, align=align, name=name)
    return BY_VALUE.sub(r"\1\3\4 \5", head) + "\n" + copies + body


def make_portable(text):
    text = SOURCE.sub('source_filename = "libnvshmem_device"', text)
    return without_by_value(ALIGNMENT.sub(r"\1", OF_THE_MODULE.sub("", FOR_ONE_GPU.sub("", text))))


if __name__ == "__main__":
    source, result = map(pathlib.Path, sys.argv[1:])
    result.write_text(make_portable(source.read_text()))
