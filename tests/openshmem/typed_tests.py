#!/usr/bin/env python3
"""Writes the tests that call every typed and sized function of OpenSHMEM 1.6, one call a line, as C99 names,
as C11 generics and from C++. Its tables follow the specification, and neither a header nor the tables of scripts/interfaces.

  tests/openshmem/typed_tests.py --out DIR    writes typed_c99.c, typed_c11.c and typed_cpp.cpp; the build calls it"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
sys.dont_write_bytecode = True

from interfaces import core  # noqa: E402: the path above comes first

# TYPENAME -> TYPE: the tables of the specification.
RMA = {
    "float": "float", "double": "double", "longdouble": "long double", "char": "char", "schar": "signed char",
    "short": "short", "int": "int", "long": "long", "longlong": "long long", "uchar": "unsigned char",
    "ushort": "unsigned short", "uint": "unsigned int", "ulong": "unsigned long", "ulonglong": "unsigned long long",
    "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t", "uint8": "uint8_t",
    "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t", "size": "size_t", "ptrdiff": "ptrdiff_t",
}


def some(names, table=RMA):
    return {name: table[name] for name in names.split()}


AMO = some("int long longlong uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff")
AMO_EXTENDED = some("float double") | AMO
AMO_BITWISE = some("uint ulong ulonglong int32 int64 uint32 uint64")
AMO_OLD = some("int long longlong")
AMO_OLD_EXTENDED = some("float double") | AMO_OLD
WAIT = some("short ushort") | AMO
COMPLEX = {"complexd": "double _Complex", "complexf": "float _Complex"}
REDUCE_BITWISE = some("uchar ushort uint ulong ulonglong int8 int16 int32 int64 uint8 uint16 uint32 uint64 size")
REDUCE_ARITHMETIC = RMA | COMPLEX
TO_ALL_BITWISE = some("short int long longlong")
TO_ALL_ORDERED = some("short int long longlong float double longdouble")
TO_ALL_ARITHMETIC = TO_ALL_ORDERED | COMPLEX
# Elements of so many bits; the widest standard type has 128 on the machines that Weft runs on.
SIZES = {"8": "uint8_t", "16": "uint16_t", "32": "uint32_t", "64": "uint64_t", "128": "long double"}

# section, words, check, name with {t} for the TYPENAME, types
RMA_CALLS = [
    ("9.6.1.1", "put", "CHECK_PUT"), ("9.6.1.2", "p", "CHECK_P"), ("9.6.1.3", "iput", "CHECK_IPUT"),
    ("9.6.1.4", "get", "CHECK_GET"), ("9.6.1.5", "g", "CHECK_G"), ("9.6.1.6", "iget", "CHECK_IGET"),
    ("1.6, 9.6.1.4", "ibput", "CHECK_IBPUT"), ("1.6, 9.6.1.8", "ibget", "CHECK_IBGET"),
    ("9.6.2.1", "put_nbi", "CHECK_PUT"), ("9.6.2.2", "get_nbi", "CHECK_GET"),
    ("9.8.3", "put_signal", "CHECK_PUT_SIGNAL"), ("9.8.4", "put_signal_nbi", "CHECK_PUT_SIGNAL"),
]
# The same with an element size in the name: shmem_put8, shmem_put8_nbi, shmem_put8_signal ...
SIZED_STEMS = {
    "put": "put{s}", "iput": "iput{s}", "get": "get{s}", "iget": "iget{s}", "ibput": "ibput{s}", "ibget": "ibget{s}", "put_nbi": "put{s}_nbi",
    "get_nbi": "get{s}_nbi", "put_signal": "put{s}_signal", "put_signal_nbi": "put{s}_signal_nbi",
}
AMO_CALLS = [
    ("9.7.1.1", "fetch", "CHECK_FETCH", AMO_EXTENDED, ""),
    ("9.7.1.2", "set", "CHECK_SET", AMO_EXTENDED, ""),
    ("9.7.1.3", "compare_swap", "CHECK_COMPARE_SWAP", AMO, ""),
    ("9.7.1.4", "swap", "CHECK_SWAP", AMO_EXTENDED, ""),
    ("9.7.1.5", "fetch_inc", "CHECK_FETCH_INC", AMO, ""),
    ("9.7.1.6", "inc", "CHECK_INC", AMO, ""),
    ("9.7.1.7", "fetch_add", "CHECK_FETCH_UPDATE", AMO, ", +"),
    ("9.7.1.8", "add", "CHECK_UPDATE", AMO, ", +"),
    ("9.7.1.9", "fetch_and", "CHECK_FETCH_UPDATE", AMO_BITWISE, ", &"),
    ("9.7.1.10", "and", "CHECK_UPDATE", AMO_BITWISE, ", &"),
    ("9.7.1.11", "fetch_or", "CHECK_FETCH_UPDATE", AMO_BITWISE, ", |"),
    ("9.7.1.12", "or", "CHECK_UPDATE", AMO_BITWISE, ", |"),
    ("9.7.1.13", "fetch_xor", "CHECK_FETCH_UPDATE", AMO_BITWISE, ", ^"),
    ("9.7.1.14", "xor", "CHECK_UPDATE", AMO_BITWISE, ", ^"),
    ("9.7.2.1", "fetch_nbi", "CHECK_FETCH_NBI", AMO_EXTENDED, ""),
    ("9.7.2.2", "compare_swap_nbi", "CHECK_COMPARE_SWAP_NBI", AMO, ""),
    ("9.7.2.3", "swap_nbi", "CHECK_SWAP_NBI", AMO_EXTENDED, ""),
    ("9.7.2.4", "fetch_inc_nbi", "CHECK_FETCH_INC_NBI", AMO, ""),
    ("9.7.2.5", "fetch_add_nbi", "CHECK_FETCH_UPDATE_NBI", AMO, ", +"),
    ("9.7.2.6", "fetch_and_nbi", "CHECK_FETCH_UPDATE_NBI", AMO_BITWISE, ", &"),
    ("9.7.2.7", "fetch_or_nbi", "CHECK_FETCH_UPDATE_NBI", AMO_BITWISE, ", |"),
    ("9.7.2.8", "fetch_xor_nbi", "CHECK_FETCH_UPDATE_NBI", AMO_BITWISE, ", ^"),
]
OLD_AMO_CALLS = [
    ("fetch", "CHECK_OLD_FETCH", AMO_OLD_EXTENDED), ("set", "CHECK_OLD_SET", AMO_OLD_EXTENDED),
    ("swap", "CHECK_OLD_SWAP", AMO_OLD_EXTENDED), ("cswap", "CHECK_OLD_COMPARE_SWAP", AMO_OLD),
    ("finc", "CHECK_OLD_FETCH_INC", AMO_OLD), ("inc", "CHECK_OLD_INC", AMO_OLD),
    ("fadd", "CHECK_OLD_FETCH_ADD", AMO_OLD), ("add", "CHECK_OLD_ADD", AMO_OLD),
]
COLLECTIVES = [
    ("9.9.5", "alltoall", "CHECK_ALLTOALL"), ("9.9.6", "alltoalls", "CHECK_ALLTOALLS"),
    ("9.9.7", "broadcast", "CHECK_BROADCAST"), ("9.9.8", "collect", "CHECK_COLLECT"),
    ("9.9.8", "fcollect", "CHECK_FCOLLECT"),
]
# section, operation, largest term, types on teams, types on active sets
REDUCTIONS = [
    ("9.9.9.1", "and", 14, REDUCE_BITWISE, TO_ALL_BITWISE), ("9.9.9.2", "or", 14, REDUCE_BITWISE, TO_ALL_BITWISE),
    ("9.9.9.3", "xor", 14, REDUCE_BITWISE, TO_ALL_BITWISE), ("9.9.9.4", "max", 14, RMA, TO_ALL_ORDERED),
    ("9.9.9.5", "min", 14, RMA, TO_ALL_ORDERED), ("9.9.9.6", "sum", 14, REDUCE_ARITHMETIC, TO_ALL_ARITHMETIC),
    ("9.9.9.7", "prod", 2, REDUCE_ARITHMETIC, TO_ALL_ARITHMETIC),
]
WAITS = [
    ("9.10.1", "wait_until", "CHECK_WAIT"), ("9.10.2", "wait_until_all", "CHECK_WAIT_ALL"),
    ("9.10.3", "wait_until_any", "CHECK_WAIT_ANY"), ("9.10.4", "wait_until_some", "CHECK_WAIT_SOME"),
    ("9.10.5", "wait_until_all_vector", "CHECK_WAIT_ALL_VECTOR"),
    ("9.10.6", "wait_until_any_vector", "CHECK_WAIT_ANY_VECTOR"),
    ("9.10.7", "wait_until_some_vector", "CHECK_WAIT_SOME_VECTOR"),
    ("9.10.8", "test", "CHECK_TEST"), ("9.10.9", "test_all", "CHECK_TEST_ALL"),
    ("9.10.10", "test_any", "CHECK_TEST_ANY"), ("9.10.11", "test_some", "CHECK_TEST_SOME"),
    ("9.10.12", "test_all_vector", "CHECK_TEST_ALL_VECTOR"), ("9.10.13", "test_any_vector", "CHECK_TEST_ANY_VECTOR"),
    ("9.10.14", "test_some_vector", "CHECK_TEST_SOME_VECTOR"),
]


class Names:
    """How one language spells a call: with the type in the name, or chosen by the compiler."""

    def __init__(self, title, generic=False, has_complex=True):
        self.title, self.generic, self.has_complex = title, generic, has_complex

    def plain(self, stem, typename, middle=""):
        return f"shmem_{middle}{stem}" if self.generic else f"shmem_{typename}_{middle}{stem}"

    def both(self, stem, typename, middle=""):
        """Without a context, and with one."""
        if self.generic:
            return ", ".join([self.plain(stem, typename, middle)] * 2)
        return f"shmem_{typename}_{middle}{stem}, shmem_ctx_{typename}_{middle}{stem}"

    def allows(self, typename):
        return self.has_complex or typename not in COMPLEX


LANGUAGES = {
    "typed_c99.c": Names("C99 names"),
    "typed_c11.c": Names("C11 generics", generic=True),
    "typed_cpp.cpp": Names("C++", has_complex=False),
}


def rma_tests(names):
    for section, stem, check in RMA_CALLS:
        calls = [f"{check}({kind}, {names.both(stem, typename)});" for typename, kind in RMA.items()]
        yield section, f"{stem}: every type", calls


def sized_tests(_):
    sections = {stem: (section, check) for section, stem, check in RMA_CALLS}
    for stem, pattern in SIZED_STEMS.items():
        section, check = sections[stem]
        calls = []
        for size, kind in SIZES.items():
            name = pattern.format(s=size)
            calls.append(f"{check}({kind}, shmem_{name}, shmem_ctx_{name});")
        if not stem.startswith("i"):
            name = pattern.format(s="mem")
            calls.append(f"{check}(unsigned char, shmem_{name}, shmem_ctx_{name});")
        yield section, f"{stem}: every element size", calls


def amo_tests(names):
    for section, stem, check, types, operator in AMO_CALLS:
        calls = [f"{check}({kind}, {names.both(stem, typename, 'atomic_')}{operator});" for typename, kind in types.items()]
        yield section, f"atomic_{stem}: every type", calls
    for stem, check, types in OLD_AMO_CALLS:
        calls = [f"{check}({kind}, {names.plain(stem, typename)});" for typename, kind in types.items()]
        yield "9.7.1", f"{stem}: the deprecated name, every type", calls


def collective_tests(names):
    for section, stem, check in COLLECTIVES:
        calls = [f"{check}({kind}, {names.plain(stem, typename)});" for typename, kind in RMA.items()]
        calls.append(f"{check}(unsigned char, shmem_{stem}mem);")
        yield section, f"{stem}: every type, on teams", calls
    for section, stem, term_max, types, _ in REDUCTIONS:
        calls = [f"CHECK_REDUCE({kind}, {names.plain(stem + '_reduce', typename)}, COMBINE_{stem.upper()}, {term_max});"
                 for typename, kind in types.items() if names.allows(typename)]
        yield section, f"{stem}_reduce: every type, on teams", calls
    for stem in ("inscan", "exscan"):
        calls = [f"CHECK_{stem.upper()}({kind}, {names.plain('sum_' + stem, typename)});"
                 for typename, kind in REDUCE_ARITHMETIC.items() if names.allows(typename)]
        yield "1.6, 9.10.10", f"sum_{stem}: every type, on teams", calls


def to_all_tests(names):
    for section, stem, term_max, _, types in REDUCTIONS:
        calls = [f"CHECK_TO_ALL({kind}, shmem_{typename}_{stem}_to_all, COMBINE_{stem.upper()}, {term_max});"
                 for typename, kind in types.items() if names.allows(typename)]
        yield section, f"{stem}_to_all: every type, on active sets", calls


def wait_tests(names):
    for section, stem, check in WAITS:
        calls = []
        for typename, kind in WAIT.items():
            setter = names.plain("set", typename, "atomic_") if typename in AMO else names.plain("p", typename)
            calls.append(f"{check}({kind}, {names.plain(stem, typename)}, {setter});")
        yield section, f"{stem}: every type", calls


def tests_of(names):
    parts = [rma_tests, amo_tests, collective_tests, wait_tests]
    if not names.generic:
        parts += [sized_tests, to_all_tests]
    for part in parts:
        yield from part(names)


def function_name(title):
    return "typed_" + "".join(c if c.isalnum() else "_" for c in title.partition(":")[0])


def source_of(names):
    lines = ["/* Generated by tests/openshmem/typed_tests.py; do not edit. Every typed function of OpenSHMEM 1.6, once:",
             f" * {names.title}. */", '#include "tests/openshmem/typed_checks.h"', ""]
    used = {}
    for section, title, calls in tests_of(names):
        function = function_name(title)
        used[function] = used.get(function, 0) + 1
        if used[function] > 1:
            function += f"_{used[function]}"
        lines += [f'TEST({function}, "{section} {title} ({names.title})") {{', *[f"  {call}" for call in calls], "}", ""]
    lines += ["/* What the checks share. */", "void suite_open(void) {", "  typed_open();", "}",
              "void suite_close(void) {", "  typed_close();", "}"]
    return "\n".join(lines) + "\n"


def sources():
    """The text of each file."""
    return {name: source_of(names) for name, names in LANGUAGES.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path, required=True, help="where to write")
    core.write(parser.parse_args().out, sources())


if __name__ == "__main__":
    main()
