"""Weft's typed functions: weft_<type>_<name>, and weft_ctx_<type>_<name> on a context, and what each calls."""
import dataclasses

INTEGERS = {"int32": "int32_t", "int64": "int64_t", "uint32": "uint32_t", "uint64": "uint64_t"}
ALL = INTEGERS | {"float": "float", "double": "double"}


@dataclasses.dataclass
class Function:
    name: str  # weft_<type>_<name>
    returns: str  # T is the element's type
    parameters: str
    call: str  # the template in src/api/fast_path.hpp and its arguments; CALL names the function and its context
    context: bool = True  # whether weft_ctx_<type>_<name> exists too


@dataclasses.dataclass
class Group:
    doc: str
    types: dict
    functions: list


def bitwise(operation, code):
    """An update, its fetching form, and that one without waiting."""
    word = "T *dest, T value, int pe"
    return [
        Function(f"atomic_{operation}", "int", word, f"update<AtomicCode::{code}>(CALL, dest, value, pe)"),
        Function(f"atomic_fetch_{operation}", "T", word, f"fetch_update<AtomicCode::{code}>(CALL, dest, value, pe)"),
        Function(f"atomic_fetch_{operation}_nbi", "int", f"T *fetch, {word}",
                 f"fetch_update_nbi<AtomicCode::{code}>(CALL, fetch, dest, value, pe)"),
    ]


IVARS = "T *ivars, size_t count, const int *status, weft_comparison comparison, T value"
SOME = "T *ivars, size_t count, size_t *indices, const int *status, weft_comparison comparison, T value"
VECTOR = "{ivars, count, status, comparison, &value, 0}"

TABLE = [
    Group("One element: p writes it, g returns it. p completes like put_nbi, but `value` may be reused at "
          "once.\n * g returns 0 on an error; weft_last_error() then has the sentence.", ALL, [
              Function("p", "int", "T *dest, T value, int pe", "p(CALL, dest, value, pe)"),
              Function("g", "T", "const T *source, int pe", "g(CALL, source, pe)"),
          ]),
    Group("put and get of `count` elements: weft_put and its kin with a type.", ALL, [
        Function("put", "int", "T *dest, const T *source, size_t count, int pe", "put(CALL, dest, source, count, pe)"),
        Function("get", "int", "T *dest, const T *source, size_t count, int pe", "get(CALL, dest, source, count, pe)"),
        Function("put_nbi", "int", "T *dest, const T *source, size_t count, int pe", "put_nbi(CALL, dest, source, count, pe)"),
        Function("get_nbi", "int", "T *dest, const T *source, size_t count, int pe", "get_nbi(CALL, dest, source, count, pe)"),
    ]),
    Group("Atomics on one aligned element, atomic with all others of the same width from any PE. Those that\n"
          " * return an element have done their work when they return, and return 0 on an error\n"
          " * (weft_last_error()); the others are done after quiet. With _nbi the old value is at `*fetch` after "
          "quiet.", ALL, [
              Function("atomic_set", "int", "T *dest, T value, int pe", "set(CALL, dest, value, pe)"),
              Function("atomic_fetch", "T", "const T *source, int pe", "fetch(CALL, source, pe)"),
              Function("atomic_fetch_nbi", "int", "T *fetch, const T *source, int pe", "fetch_nbi(CALL, fetch, source, pe)"),
              Function("atomic_swap", "T", "T *dest, T value, int pe", "fetch_update<AtomicCode::Set>(CALL, dest, value, pe)"),
              Function("atomic_swap_nbi", "int", "T *fetch, T *dest, T value, int pe",
                       "fetch_update_nbi<AtomicCode::Set>(CALL, fetch, dest, value, pe)"),
          ]),
    Group("Arithmetic; it wraps. compare_swap stores `value` where it finds `condition`, and returns what it\n"
          " * found.", INTEGERS, [
              *bitwise("add", "Add"),
              Function("atomic_inc", "int", "T *dest, int pe", "update<AtomicCode::Add>(CALL, dest, T{1}, pe)"),
              Function("atomic_fetch_inc", "T", "T *dest, int pe", "fetch_update<AtomicCode::Add>(CALL, dest, T{1}, pe)"),
              Function("atomic_fetch_inc_nbi", "int", "T *fetch, T *dest, int pe",
                       "fetch_update_nbi<AtomicCode::Add>(CALL, fetch, dest, T{1}, pe)"),
              Function("atomic_compare_swap", "T", "T *dest, T condition, T value, int pe",
                       "compare_swap<T>(CALL, dest, {condition, value}, pe)"),
              Function("atomic_compare_swap_nbi", "int", "T *fetch, T *dest, T condition, T value, int pe",
                       "compare_swap_nbi<T>(CALL, fetch, dest, {condition, value}, pe)"),
          ]),
    Group("Bits.", INTEGERS, [*bitwise("and", "And"), *bitwise("or", "Or"), *bitwise("xor", "Xor")]),
    Group("Waits for a symmetric variable of this PE that others update; what its writer put before is visible "
          "after.\n * WEFT_PEER_LOST if a PE is lost first, since it may be the one that was to write.", INTEGERS, [
              Function("wait_until", "int", "T *ivar, weft_comparison comparison, T value",
                       "wait_until(CALL, ivar, comparison, value)", context=False),
          ]),
    Group("Waits for `count` variables; those with status[i] != 0 are left out, and `status` may be NULL. all: for\n"
          " * every one. any: returns the index of one, SIZE_MAX if all are left out or on an error. some: writes "
          "the\n * indices of those that hold and returns their number, 0 if all are left out or on an error.", INTEGERS, [
              Function("wait_until_all", "int", IVARS, f"wait_until_all<T>(CALL, {VECTOR})", context=False),
              Function("wait_until_any", "size_t", IVARS, f"wait_until_any<T>(CALL, {VECTOR})", context=False),
              Function("wait_until_some", "size_t", SOME, f"wait_until_some<T>(CALL, {VECTOR}, indices)", context=False),
          ]),
    Group("The same without waiting: 1 or 0, and as above; a negative weft_status on an error.", INTEGERS, [
        Function("test", "int", "T *ivar, weft_comparison comparison, T value", "test(CALL, ivar, comparison, value)", context=False),
        Function("test_all", "int", IVARS, f"test_all<T>(CALL, {VECTOR})", context=False),
        Function("test_any", "size_t", IVARS, f"test_any<T>(CALL, {VECTOR})", context=False),
        Function("test_some", "size_t", SOME, f"test_some<T>(CALL, {VECTOR}, indices)", context=False),
    ]),
]
