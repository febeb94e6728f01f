"""NVSHMEM's functions, one a line, in a file for each family: include/nvshmem/weft_nvshmem/host/*.h (declarations) and
gpu/*.cuh (what kernels call), and at build src/nvshmem/*.cpp (what libnvshmem_host exports) and filter.c (the same names,
for the library by which wheels stand in for links)."""
from .core import FORMAT_OFF, FORMAT_ON, MARK, comment, definition, file_text, guarded
from .nvshmem_table import FAMILIES

HEADERS = "include/nvshmem/weft_nvshmem"
# Exported too: what programs call from weft_nvshmem/core.cuh as they load and unload.
MODULES = ["weft_nvshmem_module_register", "weft_nvshmem_module_unregister"]


def head(family, what):
    return comment("", f"{family.doc} {what}", f"Source: NVSHMEM's documentation, {family.page}.")


def guard(family, end):
    return f"WEFT_NVSHMEM_{family.file.upper()}_{end}"


def host_header(family):
    both = [f"{one};" for one in family.functions if one.host and one.gpu]
    host = [f"{one};" for one in family.functions if one.host and not one.gpu]
    lines = []
    if both:
        lines += ["WEFT_NVSHMEM_BEGIN_BOTH", *both, "WEFT_NVSHMEM_END_BOTH"]
    if host:
        lines += ["WEFT_NVSHMEM_BEGIN_HOST", *host, "WEFT_NVSHMEM_END_HOST"]
    return file_text(head(family, "What the host calls; those of the first part have a form in kernels too."),
                     guarded(guard(family, "HOST_H"), "#include <weft_nvshmem/types.h>", "", "#ifndef WEFT_NVSHMEM_NO_HOST", FORMAT_OFF,
                             lines, FORMAT_ON, "#endif"))


def kernel_function(one):
    """Without a form on the host: the call itself. With one: whichever side it is compiled for."""
    if one.host:
        return definition(f"WEFT_NVSHMEM_BOTH {one}", f"return WEFT_NVSHMEM_ON({one.gpu}, {one.name}({', '.join(one.arguments)}));")
    return definition(f"WEFT_NVSHMEM_GPU {one}", f"return ::weft_nvshmem::{one.gpu};")


def kernel_header(family):
    functions = [kernel_function(one) for one in family.functions if one.gpu]
    return file_text(head(family, "What kernels call."),
                     guarded(guard(family, "GPU_CUH"), "#include <weft_nvshmem/core.cuh>", f"#include <weft_nvshmem/host/{family.file}.h>", "",
                             FORMAT_OFF, functions, FORMAT_ON))


def source(family):
    functions = [definition(one, f"{'' if one.returns == 'void' else 'return '}{one.host};") for one in family.functions if one.host]
    return file_text(f"// {MARK} The work is done in src/nvshmem.", f"#include <weft_nvshmem/host/{family.file}.h>", "",
                     '#include "src/nvshmem/calls.hpp"', "", "using namespace weft::nvshmem;", "",
                     "#pragma GCC visibility push(default)", "// clang-format off", functions)


def filter_source():
    names = sorted(one.name for family in FAMILIES for one in family.functions if one.host)
    return file_text(f"/* {MARK} */", [f"void {name}(void) {{}}" for name in [*names, *MODULES]])


def headers():
    made = {f"{HEADERS}/host/{family.file}.h": host_header(family) for family in FAMILIES}
    made |= {f"{HEADERS}/gpu/{family.file}.cuh": kernel_header(family) for family in FAMILIES if any(one.gpu for one in family.functions)}
    return made


def sources():
    made = {f"src/nvshmem/{family.file}.cpp": source(family) for family in FAMILIES if any(one.host for one in family.functions)}
    return made | {"src/nvshmem/filter.c": filter_source()}
