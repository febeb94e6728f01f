"""Weft's own typed functions: include/weft/typed.h (one declaration a line), include/weft/typed.hpp (the functions of each
type as C++ finds them), and at build src/api/typed.cpp (one definition a line)."""
from .core import END_EXTERN_C, EXTERN_C, FORMAT_OFF, FORMAT_ON, MARK, Prototype, comment, definition, file_text, guarded, of_type
from .weft_table import ALL, TABLE


def functions(group):
    """(prototype, body) of every function of a group, by type; each that there is on a context is followed by that form."""
    for type_name, c_type in group.types.items():
        for function in group.functions:
            plain = Prototype.parse(of_type(f"{function.returns} weft_TYPE_{function.name}({function.parameters})", type_name, c_type))
            call = of_type(function.call, type_name, c_type)
            yield plain, call.replace("CALL", f'{{"{plain.name}"}}')
            if function.context:
                name = f"weft_ctx_{type_name}_{function.name}"
                yield Prototype(plain.returns, name, f"weft_ctx_t context, {plain.parameters}"), call.replace("CALL", f'{{"{name}", context}}')


def c_header():
    declarations = []
    for group in TABLE:
        declarations += ["", f"/* {group.doc} */", *(f"WEFT_EXPORT {prototype};" for prototype, _ in functions(group))]
    return file_text(
        comment("", "Weft's typed functions: weft_<type>_<name>, and weft_ctx_<type>_<name> on a context. `dest` of a put or",
                "an atomic and `source` of a get or a fetch are symmetric addresses. Include <weft/weft.h>."),
        guarded("WEFT_TYPED_H", "#include <weft/weft.h>", "", EXTERN_C, "", FORMAT_OFF, declarations, "", FORMAT_ON, "", END_EXTERN_C,
                note=" /* WEFT_TYPED_H */"))


def pointers(type_name):
    return [f"  static constexpr auto {function.name} = &weft_{'ctx_' * function.context}{type_name}_{function.name};"
            for group in TABLE if type_name in group.types for function in group.functions]


def cxx_header():
    structures = []
    for type_name, c_type in ALL.items():
        structures += ["", "template <>", f"struct TypedFunctions<{c_type}> {{", *pointers(type_name), "};"]
    return file_text(
        f"// {MARK}", "//", "// The C functions of each element type, for weft/weft.hpp to choose from: those on a context where there is",
        "// one, else the plain ones.",
        guarded("WEFT_TYPED_HPP", "#include <weft/typed.h>", "", "namespace weft {", "", "// clang-format off",
                "// NOLINTBEGIN(readability-identifier-naming): called like functions, so named like functions", "",
                "template <typename T>", "struct TypedFunctions;", structures, "",
                "// NOLINTEND(readability-identifier-naming)", "// clang-format on", "", "}  // namespace weft", note="  // WEFT_TYPED_HPP"))


def source():
    lines = []
    for group in TABLE:
        lines += ["", *(definition(prototype, f"return typed::{body};") for prototype, body in functions(group))]
    return file_text(f"// {MARK} The templates are in fast_path.hpp and typed_wait.hpp.",
                     '#include "src/api/fast_path.hpp"', '#include "src/api/typed_wait.hpp"', "",
                     "using namespace weft::api;", "using weft::rma::AtomicCode;", "", "// clang-format off", lines)


def headers():
    return {"include/weft/typed.h": c_header(), "include/weft/typed.hpp": cxx_header()}


def sources():
    return {"src/api/typed.cpp": source()}
