"""NVRTC and nvJitLink, called as programs that compile at run time call them. Neither needs a GPU.

  run_time_compilers.py CUDA_INCLUDE ARCHITECTURE CUBIN PART...    links parts in LTO IR into a file
"""
import ctypes
import pathlib
import re
import sys

NVJITLINK_INPUT_LTOIR = 3


def open_library(cuda_include, name):
    """Of the CUDA toolkit; None if it has none."""
    found = sorted((cuda_include.parent / "lib64").glob(f"{name}.so*")) if cuda_include else []
    return ctypes.CDLL(str(found[0])) if found else None


def sized(size, content, handle):
    count = ctypes.c_size_t()
    assert size(handle, ctypes.byref(count)) == 0
    text = ctypes.create_string_buffer(count.value + 1)
    assert content(handle, text) == 0
    return text.raw[:count.value]


def nvrtc(library, source, *options, result="CUBIN"):
    """The machine code, or the LTO IR, of a source; a failure shows the log."""
    program = ctypes.c_void_p()
    assert library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"program.cu", 0, None, None) == 0
    words = (ctypes.c_char_p * len(options))(*(str(option).encode() for option in options))
    failed = library.nvrtcCompileProgram(program, len(options), words)
    assert not failed, sized(library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog, program).decode()[:4000]
    return sized(getattr(library, f"nvrtcGet{result}Size"), getattr(library, f"nvrtcGet{result}"), program)


def versioned(library, cuda_include):
    """nvJitLink's functions have their version in their names."""
    text = (cuda_include / "nvJitLink.h").read_text()
    names = dict(re.findall(r"#define\s+(nvJitLink\w+)\s+(__nvJitLink\w+)", text))
    return lambda name: getattr(library, names.get(name, name))


def link(library, cuda_include, architecture, *parts):
    """A cubin of parts in LTO IR."""
    call = versioned(library, cuda_include)
    options = (ctypes.c_char_p * 2)(f"-arch={architecture}".encode(), b"-lto")
    handle = ctypes.c_void_p()
    assert call("nvJitLinkCreate")(ctypes.byref(handle), 2, options) == 0
    failed = 0
    for number, part in enumerate(parts):
        failed = failed or call("nvJitLinkAddData")(handle, NVJITLINK_INPUT_LTOIR, part, ctypes.c_size_t(len(part)), f"part {number}".encode())
    failed = failed or call("nvJitLinkComplete")(handle)
    assert not failed, sized(call("nvJitLinkGetErrorLogSize"), call("nvJitLinkGetErrorLog"), handle).decode()[:4000]
    return sized(call("nvJitLinkGetLinkedCubinSize"), call("nvJitLinkGetLinkedCubin"), handle)


def symbols(cubin, folder, well):
    """Lines of readelf about the state."""
    file = pathlib.Path(folder) / "linked.cubin"
    file.write_bytes(cubin)
    return [line.split() for line in well("readelf", "-sW", file).splitlines() if "weft_device_state_of_module" in line]


def main(include, architecture, cubin, *parts):
    include = pathlib.Path(include)
    library = open_library(include, "libnvJitLink") or sys.exit("no nvJitLink in this CUDA toolkit")
    pathlib.Path(cubin).write_bytes(link(library, include, architecture, *(pathlib.Path(part).read_bytes() for part in parts)))


if __name__ == "__main__":
    main(*sys.argv[1:])
