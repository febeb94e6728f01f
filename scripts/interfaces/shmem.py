"""OpenSHMEM 1.6: include/shmem.h (one declaration a line, and C11's generic selections) and include/shmemx.h (names from
before 1.6), and at build include/pshmem.h (the profiling names, which say nothing that shmem.h does not) and src/shmem/*.cpp
(one definition a line, and the names that tools may replace)."""
import re

from .core import END_EXTERN_C, EXTERN_C, FORMAT_OFF, FORMAT_ON, MARK, comment, definition, file_text, guarded
from .shmem_constants import CONSTANTS
from .shmem_table import BY_POINTER, GENERICS, SECTIONS, SIGNAL_GENERICS, SYNC_GENERIC, of_c_complex

INCLUDES = ["src/api/fast_path.hpp", "src/api/typed_wait.hpp", "src/shmem/contexts.hpp", "src/shmem/lock.hpp",
            "src/shmem/setup.hpp", "src/shmem/teams.hpp", "src/shmem/typed_collectives.hpp"]


def second_name(function):
    """What a tool calls; the oldest names, which do not begin with shmem_, have none."""
    return function.name.replace("shmem_", "pshmem_", 1) if function.name.startswith("shmem_") else None


def declarations(name_of):
    lines = []
    for section in SECTIONS:
        lines += ["", f"/* {section.doc} */"]
        lines += [f"WEFT_EXPORT {f.under(name_of(f))};" for f in section.functions if name_of(f)]
    return lines


def complex_overloads(name_of):
    lines = [of_c_complex(f, name_of(f)) for section in SECTIONS for f in section.functions if name_of(f)]
    return ["/* The same for C's complex types in C++. */", "#ifdef WEFT_HAS_C_COMPLEX", *filter(None, lines), "#endif", ""]


def associations(types, prefix, suffix):
    return ", ".join(f"{c_type} *: {prefix}{name}{suffix}, const {c_type} *: {prefix}{name}{suffix}" for name, c_type in types.items())


def generic_lines():
    """WEFT_<list>(prefix, suffix) is the list's associations; a selection looks at the first argument, or, behind a
    context or a team, at the second."""
    lines = ["#define WEFT_FIRST(first, ...) first", "#define WEFT_SECOND(first, second, ...) second",
             "#define WEFT_NONE default: weft_no_such_function_for_this_type"]
    for name, types in BY_POINTER.items():
        each = associations(types, "prefix##", "##suffix")
        lines.append(f"#define WEFT_{name}(prefix, suffix) {each}, WEFT_NONE")
    for name in BY_POINTER:
        first, second = "(WEFT_FIRST(__VA_ARGS__, 0))", "(WEFT_SECOND(__VA_ARGS__, 0, 0))"
        on_context = f"shmem_ctx_t: _Generic({second}, WEFT_{name}(shmem_ctx_, suffix))"
        lines += [f"#define WEFT_PICK_{name}(suffix, ...) _Generic({first}, WEFT_{name}(shmem_, suffix))(__VA_ARGS__)",
                  f"#define WEFT_CTX_{name}(suffix, ...) _Generic({first}, {on_context}, WEFT_{name}(shmem_, suffix))(__VA_ARGS__)",
                  f"#define WEFT_TEAM_{name}(suffix, ...) _Generic({second}, WEFT_{name}(shmem_, suffix))(__VA_ARGS__)"]
    lines.append("")
    lines += [f"#define shmem_{name}(...) WEFT_{form}_{types}(_{name}, __VA_ARGS__)" for name, form, types in GENERICS]
    return [*lines, *SIGNAL_GENERICS, SYNC_GENERIC]


def header():
    return file_text(
        comment("", "OpenSHMEM 1.6 on Weft: the whole C interface, for C99, C11 (with generic selections) and C++. What the",
                "functions mean is in the specification; what is particular here, in docs/OPENSHMEM.md.", "",
                "Errors: functions without a result that can say so print one sentence and end the job."),
        guarded("SHMEM_H", "#include <stddef.h>", "#include <stdint.h>", "", "#include <weft/weft.h>", "", FORMAT_OFF, "", CONSTANTS, "",
                EXTERN_C, declarations(lambda f: f.name), "",
                "/* Chosen for a type that the function is not there for; it does not exist. */",
                "void weft_no_such_function_for_this_type(void);", "", END_EXTERN_C, "", complex_overloads(lambda f: f.name),
                "/* C11's generic selections. */",
                "#if !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L && !defined(SHMEM_NO_GENERICS)",
                generic_lines(), "#endif", "", FORMAT_ON, note=" /* SHMEM_H */"))


def profiling_header():
    return file_text(
        comment("", "The profiling interface: each function of shmem.h under a second name. A tool defines shmem_X itself and", "calls pshmem_X."),
        guarded("PSHMEM_H", "#include <shmem.h>", "", FORMAT_OFF, "", EXTERN_C, declarations(second_name), "", END_EXTERN_C, "",
                complex_overloads(second_name), FORMAT_ON, note=" /* PSHMEM_H */"))


def extensions_header():
    """The names by which 1.6's additions were tried out before."""
    names = [f.name for section in SECTIONS for f in section.functions
             if re.search(r"_(ibput|ibget)(8|16|32|64|128)?$|_sum_(in|ex)scan$|_signal_(add|set)$", f.name)]
    selections = ["shmem_ibput", "shmem_ibget", "shmem_sum_inscan", "shmem_sum_exscan"]
    lines = [f"#define {name.replace('shmem_', 'shmemx_', 1)} {name}" for name in [*names, *selections]]
    return file_text(
        comment("", "Weft's extensions of OpenSHMEM: all of <weft/weft.h>, whose functions may be mixed with those of shmem.h",
                "(a shmem_ctx_t is a weft_ctx_t, a shmem_team_t a weft_team_t). And the names that Sandia OpenSHMEM gave to",
                "what OpenSHMEM 1.6 took over."),
        guarded("SHMEMX_H", "#include <shmem.h>", "", FORMAT_OFF, lines, FORMAT_ON, note=" /* SHMEMX_H */"))


def source(section):
    replaced = [f for f in section.functions if second_name(f)]
    return file_text(
        f"// {MARK} The work is done in src/shmem and src/api.",
        "#define SHMEM_NO_GENERICS 1", "#define SHMEM_NO_C_COMPLEX 1", "#include <pshmem.h>", "", [f'#include "{name}"' for name in INCLUDES], "",
        "using namespace weft::api;", "using weft::rma::AtomicCode;", "using weft::rma::Blocking;", "", "// clang-format off",
        '#pragma GCC diagnostic ignored "-Wunused-parameter"' if section.unused else "", "",
        [definition(f.under(second_name(f) or f.name), f.body) for f in section.functions],
        "", "// What programs call; a tool's own definition goes before.",
        [f'decltype(p{f.name}) {f.name} __attribute__((weak, alias("p{f.name}")));' for f in replaced])


def headers():
    return {"include/shmem.h": header(), "include/shmemx.h": extensions_header()}


def sources():
    made = {"include/pshmem.h": profiling_header()}
    return made | {f"src/shmem/{section.file}.cpp": source(section) for section in SECTIONS}
