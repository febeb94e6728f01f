"""OpenSHMEM 1.6's functions and their types, and what each calls."""
import dataclasses
import re

from .c_types import C_INTEGERS, FIXED, REAL, SIZES, chosen
from .core import Prototype, definition, of_type

COMPLEX = {"complexd": "weft_complexd_t", "complexf": "weft_complexf_t"}

# The specification's tables of types, by their names there.
RMA = REAL | C_INTEGERS | FIXED | SIZES
AMO = chosen(RMA, "int long longlong uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff")
EXTENDED_AMO = chosen(RMA, "float double") | AMO
BITWISE_AMO = chosen(RMA, "uint ulong ulonglong int32 int64 uint32 uint64")
WAIT = chosen(RMA, "short int long longlong ushort uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff")
REDUCE_BITS = chosen(RMA, "uchar ushort uint ulong ulonglong") | FIXED | chosen(RMA, "size")
REDUCE_ORDER = RMA
REDUCE_SUM = RMA | COMPLEX
SET_BITS = chosen(RMA, "short int long longlong")
SET_ORDER = SET_BITS | REAL
SET_SUM = SET_ORDER | COMPLEX
OLD_AMO = chosen(RMA, "int long longlong")
OLD_EXTENDED_AMO = chosen(RMA, "float double") | OLD_AMO
BITS = (8, 16, 32, 64, 128)


@dataclasses.dataclass
class Function(Prototype):
    body: str


@dataclasses.dataclass
class Section:
    file: str
    doc: str
    functions: list
    unused: bool = False  # whether some take arguments that mean nothing here


def caller(name, context=None):
    return f'{{"{name}", {context or "WEFT_CTX_DEFAULT"}, OnError::EndJob}}'


def one(prototype, body):
    """CALL stands for the function as an error names it."""
    parsed = Prototype.parse(prototype)
    call = body.replace("CALL", caller(parsed.name))
    if call and not call.endswith("}"):
        call = f"{call};" if parsed.returns == "void" else f"return {call};"
    return Function(parsed.returns, parsed.name, parsed.parameters, call)


def each(types, prototypes):
    """Each prototype for each type: TYPE is the name, T the C type."""
    result = []
    for name, c_type in types.items():
        for prototype, body in prototypes:
            result.append(one(of_type(prototype, name, c_type), of_type(body, name, c_type)))
    return result


def with_ctx(prototype, body):
    """The function itself, and its form on a context: shmem_x(...) and shmem_ctx_x(shmem_ctx_t ctx, ...)."""
    plain_form = Prototype.parse(prototype)
    on_ctx = Prototype(plain_form.returns, plain_form.name.replace("shmem_", "shmem_ctx_", 1), f"shmem_ctx_t ctx, {plain_form.parameters}")
    return [(prototype, body), (str(on_ctx), body.replace("CALL", caller(on_ctx.name, "ctx")))]


def both(types, prototypes):
    return each(types, [form for prototype in prototypes for form in with_ctx(*prototype)])


def sized(prototypes):
    """Each prototype for each size of element: N is its bits, B its bytes."""
    result = []
    for bits in BITS:
        for form in [form for prototype in prototypes for form in with_ctx(*prototype)]:
            result.append(one(*(re.sub(r"\bB\b", str(bits // 8), part.replace("NBITS", str(bits))) for part in form)))
    return result


def plain(prototypes):
    return [one(*form) for form in prototypes]


def plain_ctx(prototypes):
    return [one(*form) for prototype in prototypes for form in with_ctx(*prototype)]


TRANSFER = "T *dest, const T *source, size_t nelems, int pe"
STRIDED = "T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe"
V = "void *dest, const void *source, size_t nelems, int pe"
VS = "void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe"
BLOCKS = "T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe"
VB = BLOCKS.replace("T *", "void *")
MOVES = [("put", "put", "Yes"), ("get", "get", "Yes"), ("put", "put", "No"), ("get", "get", "No")]
SIGNAL = "uint64_t *sig_addr, uint64_t signal, int sig_op, int pe"
THE_SIGNAL = "typed::signal_of(sig_addr, signal, sig_op)"


def moves(put_name, parameters, size):
    """put, get and their nbi forms of raw bytes; put_name has {} for the verb and ends where _nbi follows."""
    return [(f"void {put_name.format(verb)}{'' if wait == 'Yes' else '_nbi'}({parameters})",
             f"typed::{verb}_bytes<Blocking::{wait}>(CALL, dest, source, {size}, pe)") for _, verb, wait in MOVES]


def strided(name, parameters, size):
    return [(f"void {name.format(verb)}({parameters})", f"end_job_if_failed(CALL, {verb}(CALL, dest, source, {{dst, sst, {size}, nelems}}, pe))")
            for verb in ("iput", "iget")]


def blocks(name, parameters, size):
    return [(f"void {name.format(verb)}({parameters})",
             f"end_job_if_failed(CALL, {verb}(CALL, dest, source, {{{{dst, sst, {size}, nblocks}}, bsize}}, pe))") for verb in ("ibput", "ibget")]


def signals(name, parameters, size):
    return [(f"void {name}{suffix}({parameters}, {SIGNAL})",
             f"typed::put_signal_bytes<Blocking::{wait}>(CALL, {{dest, {size}, pe}}, source, {THE_SIGNAL})")
            for suffix, wait in (("", "Yes"), ("_nbi", "No"))]


RMA_FUNCTIONS = [
    *both(RMA, [
        ("void shmem_TYPE_p(T *dest, T value, int pe)", "typed::p(CALL, dest, value, pe)"),
        ("T shmem_TYPE_g(const T *source, int pe)", "typed::g(CALL, source, pe)"),
        *moves("shmem_TYPE_{}", TRANSFER, "typed::bytes_of<T>(nelems)"),
        *strided("shmem_TYPE_{}", STRIDED, "sizeof(T)"),
        *blocks("shmem_TYPE_{}", BLOCKS, "sizeof(T)"),
    ]),
    *sized([*moves("shmem_{}NBITS", V, "times(nelems, B)"), *strided("shmem_{}NBITS", VS, "B"), *blocks("shmem_{}NBITS", VB, "B")]),
    *plain_ctx(moves("shmem_{}mem", V, "nelems")),
]

T_ = "T *dest, T value, int pe"


def update(name, code):
    """An update, its fetching form, and that one without waiting."""
    return [(f"void shmem_TYPE_atomic_{name}({T_})", f"typed::update<AtomicCode::{code}>(CALL, dest, value, pe)"),
            (f"T shmem_TYPE_atomic_fetch_{name}({T_})", f"typed::fetch_update<AtomicCode::{code}>(CALL, dest, value, pe)"),
            (f"void shmem_TYPE_atomic_fetch_{name}_nbi(T *fetch, {T_})", f"typed::fetch_update_nbi<AtomicCode::{code}>(CALL, fetch, dest, value, pe)")]


AMO_FUNCTIONS = [
    *both(EXTENDED_AMO, [
        ("T shmem_TYPE_atomic_fetch(const T *source, int pe)", "typed::fetch(CALL, source, pe)"),
        ("void shmem_TYPE_atomic_fetch_nbi(T *fetch, const T *source, int pe)", "typed::fetch_nbi(CALL, fetch, source, pe)"),
        (f"void shmem_TYPE_atomic_set({T_})", "typed::set(CALL, dest, value, pe)"),
        (f"T shmem_TYPE_atomic_swap({T_})", "typed::fetch_update<AtomicCode::Set>(CALL, dest, value, pe)"),
        (f"void shmem_TYPE_atomic_swap_nbi(T *fetch, {T_})", "typed::fetch_update_nbi<AtomicCode::Set>(CALL, fetch, dest, value, pe)"),
    ]),
    *both(AMO, [
        ("T shmem_TYPE_atomic_compare_swap(T *dest, T cond, T value, int pe)", "typed::compare_swap<T>(CALL, dest, {cond, value}, pe)"),
        ("void shmem_TYPE_atomic_compare_swap_nbi(T *fetch, T *dest, T cond, T value, int pe)", "typed::compare_swap_nbi<T>(CALL, fetch, dest, {cond, value}, pe)"),
        ("void shmem_TYPE_atomic_inc(T *dest, int pe)", "typed::update<AtomicCode::Add>(CALL, dest, static_cast<T>(1), pe)"),
        ("T shmem_TYPE_atomic_fetch_inc(T *dest, int pe)", "typed::fetch_update<AtomicCode::Add>(CALL, dest, static_cast<T>(1), pe)"),
        ("void shmem_TYPE_atomic_fetch_inc_nbi(T *fetch, T *dest, int pe)", "typed::fetch_update_nbi<AtomicCode::Add>(CALL, fetch, dest, static_cast<T>(1), pe)"),
        *update("add", "Add"),
    ]),
    *both(BITWISE_AMO, [*update("and", "And"), *update("or", "Or"), *update("xor", "Xor")]),
    *each(OLD_EXTENDED_AMO, [
        ("T shmem_TYPE_fetch(const T *source, int pe)", "typed::fetch(CALL, source, pe)"),
        (f"void shmem_TYPE_set({T_})", "typed::set(CALL, dest, value, pe)"),
        (f"T shmem_TYPE_swap({T_})", "typed::fetch_update<AtomicCode::Set>(CALL, dest, value, pe)"),
    ]),
    *each(OLD_AMO, [
        ("T shmem_TYPE_cswap(T *dest, T cond, T value, int pe)", "typed::compare_swap<T>(CALL, dest, {cond, value}, pe)"),
        (f"void shmem_TYPE_add({T_})", "typed::update<AtomicCode::Add>(CALL, dest, value, pe)"),
        (f"T shmem_TYPE_fadd({T_})", "typed::fetch_update<AtomicCode::Add>(CALL, dest, value, pe)"),
        ("void shmem_TYPE_inc(T *dest, int pe)", "typed::update<AtomicCode::Add>(CALL, dest, static_cast<T>(1), pe)"),
        ("T shmem_TYPE_finc(T *dest, int pe)", "typed::fetch_update<AtomicCode::Add>(CALL, dest, static_cast<T>(1), pe)"),
    ]),
]

SIGNAL_FUNCTIONS = [
    *both(RMA, signals("shmem_TYPE_put_signal", "T *dest, const T *source, size_t nelems", "typed::bytes_of<T>(nelems)")),
    *[function for bits in BITS for function in
      plain_ctx(signals(f"shmem_put{bits}_signal", "void *dest, const void *source, size_t nelems", f"times(nelems, {bits // 8})"))],
    *plain_ctx(signals("shmem_putmem_signal", "void *dest, const void *source, size_t nelems", "nelems")),
    *plain_ctx([(f"void shmem_signal_{name}(uint64_t *sig_addr, uint64_t signal, int pe)",
                 f"typed::signal(CALL, {{sig_addr, signal, WEFT_SIGNAL_{name.upper()}}}, pe)") for name in ("add", "set")]),
    *plain([("uint64_t shmem_signal_fetch(const uint64_t *sig_addr)", "weft::rma::load_word(sig_addr)"),
            ("uint64_t shmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value)", "typed::signal_wait_until(CALL, sig_addr, cmp, cmp_value)")]),
]

# cmp is cast where it is checked.
ONE = "{ivars, nelems, status, typed::comparison_of(cmp), &cmp_value, 0}"
MANY = "{ivars, nelems, status, typed::comparison_of(cmp), cmp_values, 1}"


def arrays(verb, all_returns):
    forms = []
    for suffix, value, variables in (("", "T cmp_value", ONE), ("_vector", "const T *cmp_values", MANY)):
        forms += [
            (f"{all_returns} shmem_TYPE_{verb}_all{suffix}(T *ivars, size_t nelems, const int *status, int cmp, {value})", f"typed::{verb}_all<T>(CALL, {variables})"),
            (f"size_t shmem_TYPE_{verb}_any{suffix}(T *ivars, size_t nelems, const int *status, int cmp, {value})", f"typed::{verb}_any<T>(CALL, {variables})"),
            (f"size_t shmem_TYPE_{verb}_some{suffix}(T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, {value})", f"typed::{verb}_some<T>(CALL, {variables}, indices)"),
        ]
    return forms


WAIT_FUNCTIONS = [
    *each(WAIT, [
        ("void shmem_TYPE_wait_until(T *ivar, int cmp, T cmp_value)", "typed::wait_until(CALL, ivar, typed::comparison_of(cmp), cmp_value)"),
        *arrays("wait_until", "void"),
        ("int shmem_TYPE_test(T *ivar, int cmp, T cmp_value)", "typed::test(CALL, ivar, typed::comparison_of(cmp), cmp_value)"),
        *arrays("test", "int"),
    ]),
    *each(chosen(RMA, "short int long longlong ushort uint ulong ulonglong"), [
        ("void shmem_TYPE_wait(T *ivar, T cmp_value)", "typed::wait_until(CALL, ivar, WEFT_NE, cmp_value)")]),
    *plain([("void shmem_wait(long *ivar, long cmp_value)", "typed::wait_until(CALL, ivar, WEFT_NE, cmp_value)"),
            ("void shmem_wait_until(long *ivar, int cmp, long cmp_value)", "typed::wait_until(CALL, ivar, typed::comparison_of(cmp), cmp_value)")]),
]

SD = "shmem_team_t team, T *dest, const T *source"
VD = "shmem_team_t team, void *dest, const void *source"


def moving(pattern, sides, size, element):
    """alltoall, alltoalls, broadcast, collect and fcollect on a team."""
    return [
        (f"int {pattern.format('alltoall')}({sides}, size_t nelems)", f"weft_team_alltoall(team, dest, source, {size})"),
        (f"int {pattern.format('alltoalls')}({sides}, ptrdiff_t dst, ptrdiff_t sst, size_t nelems)", f"weft_team_alltoalls(team, dest, source, {{dst, sst, {element}, nelems}})"),
        (f"int {pattern.format('broadcast')}({sides}, size_t nelems, int PE_root)", f"weft_team_broadcast(team, dest, source, {size}, PE_root)"),
        (f"int {pattern.format('collect')}({sides}, size_t nelems)", f"weft_team_collect(team, dest, source, {size})"),
        (f"int {pattern.format('fcollect')}({sides}, size_t nelems)", f"weft_team_fcollect(team, dest, source, {size})"),
    ]


def reduce(name):
    return (f"int shmem_TYPE_{name}_reduce({SD}, size_t nreduce)", f"typed::reduce<WEFT_{name.upper()}>(team, dest, source, nreduce)")


def scan(name):
    """Of sums alone."""
    return (f"int shmem_TYPE_sum_{name}({SD}, size_t nelems)", f"typed::{name}(team, dest, source, nelems)")


def set_reduce(name):
    return (f"void shmem_TYPE_{name}_to_all(T *dest, const T *source, int nreduce, int PE_start, int logPE_stride, int PE_size, T *pWrk, long *pSync)",
            f"typed::set_reduce<WEFT_{name.upper()}>(CALL, {SET}, dest, source, nreduce)")


SET = "{PE_start, logPE_stride, PE_size, pSync}"
ACTIVE = "int PE_start, int logPE_stride, int PE_size, long *pSync"


def on_sets(bits):
    size = f"times(nelems, {bits // 8})"
    sides = "void *dest, const void *source"
    return plain([
        (f"void shmem_broadcast{bits}({sides}, size_t nelems, int PE_root, {ACTIVE})", f"end_job_if_failed(CALL, active_broadcast(CALL_NAME, {SET}, dest, source, {size}, PE_root))"),
        (f"void shmem_collect{bits}({sides}, size_t nelems, {ACTIVE})", f"end_job_if_failed(CALL, active_collect(CALL_NAME, {SET}, dest, source, {size}))"),
        (f"void shmem_fcollect{bits}({sides}, size_t nelems, {ACTIVE})", f"end_job_if_failed(CALL, active_fcollect(CALL_NAME, {SET}, dest, source, {size}))"),
        (f"void shmem_alltoall{bits}({sides}, size_t nelems, {ACTIVE})", f"end_job_if_failed(CALL, active_alltoall(CALL_NAME, {SET}, dest, source, {size}))"),
        (f"void shmem_alltoalls{bits}({sides}, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, {ACTIVE})", f"end_job_if_failed(CALL, active_alltoalls(CALL_NAME, {SET}, dest, source, {{dst, sst, {bits // 8}, nelems}}))"),
    ])


COLLECTIVE_FUNCTIONS = [
    *plain([("void shmem_barrier_all(void)", "end_job_if_failed(CALL, weft_barrier_all())"),
            ("void shmem_sync_all(void)", "end_job_if_failed(CALL, weft_sync_all())"),
            ("int shmem_team_sync(shmem_team_t team)", "weft_team_sync(team)"),
            *moving("shmem_{}mem", VD, "nelems", "1")]),
    *each(RMA, moving("shmem_TYPE_{}", SD, "typed::bytes_of<T>(nelems)", "sizeof(T)")),
    *each(REDUCE_BITS, [reduce("and"), reduce("or"), reduce("xor")]),
    *each(REDUCE_ORDER, [reduce("max"), reduce("min")]),
    *each(REDUCE_SUM, [reduce("sum"), reduce("prod"), scan("inscan"), scan("exscan")]),
]

ACTIVE_SET_FUNCTIONS = [
    *plain([(f"void shmem_barrier({ACTIVE})", f"end_job_if_failed(CALL, active_barrier(CALL_NAME, {SET}))"),
            (f"void shmem_sync({ACTIVE})", f"end_job_if_failed(CALL, active_sync(CALL_NAME, {SET}))")]),
    *on_sets(32), *on_sets(64),
    *each(SET_BITS, [set_reduce("and"), set_reduce("or"), set_reduce("xor")]),
    *each(SET_ORDER, [set_reduce("max"), set_reduce("min")]),
    *each(SET_SUM, [set_reduce("sum"), set_reduce("prod")]),
]
for function in ACTIVE_SET_FUNCTIONS:
    function.body = function.body.replace("CALL_NAME", f'"{function.name}"').replace(
        f'{caller(function.name)}_NAME', f'"{function.name}"')

# What returns an error leaves a sentence that names the function as the user called it.
RETURNS_ERROR = ("weft_team_alltoall", "weft_team_broadcast", "weft_team_collect", "weft_team_fcollect", "weft_team_sync",
                 "typed::reduce", "typed::inscan", "typed::exscan", "shmem::split", "shmem::create_context", "shmem::team_of_context",
                 "shmem::team_config")
# Asked of no team or no context they say so by their result alone, as the specification has it.
MAY_BE_ASKED_OF_NONE = {"parent_team": "SHMEM_TEAM_INVALID", "team": "SHMEM_TEAM_INVALID", "ctx": "SHMEM_CTX_INVALID"}


def name_errors(functions, of_none=False):
    """of_none: whether they may be asked of no team or context."""
    for function in functions:
        call = function.body.removeprefix("return ").removesuffix(";")
        if not call.startswith(RETURNS_ERROR):
            continue
        handle = re.split(r"\W+", function.parameters)[1]
        condition = f"{handle} == {MAY_BE_ASKED_OF_NONE[handle]}" if of_none and handle in MAY_BE_ASKED_OF_NONE else None
        function.body = (f'return rename_on_error("{function.name}", {call});' if condition is None else
                         f'return {condition} ? {call} : rename_on_error("{function.name}", {call});')


name_errors(COLLECTIVE_FUNCTIONS)

SETUP_FUNCTIONS = plain([
    ("void shmem_init(void)", "end_job_if_failed(CALL, shmem::init(CALL, SHMEM_THREAD_MULTIPLE))"),
    ("int shmem_init_thread(int requested, int *provided)", 'shmem::init_thread({"shmem_init_thread"}, requested, provided)'),
    ("void shmem_query_initialized(int *initialized)", "*initialized = weft_initialized()"),
    ("void shmem_query_thread(int *provided)", "*provided = shmem::thread_level()"),
    ("void shmem_finalize(void)", "end_job_if_failed(CALL, shmem::finalize())"),
    ("void shmem_global_exit(int status)", 'global_exit("shmem_global_exit", status)'),
    ("int shmem_my_pe(void)", "weft_pe()"),
    ("int shmem_n_pes(void)", "weft_pe_count()"),
    ("int shmem_pe_accessible(int pe)", "shmem::is_pe(pe)"),
    ("int shmem_addr_accessible(const void *addr, int pe)", "shmem::is_accessible(addr, pe)"),
    ("void *shmem_ptr(const void *dest, int pe)", "weft_ptr(dest, pe)"),
    ("void shmem_info_get_version(int *major, int *minor)", "{ *major = SHMEM_MAJOR_VERSION; *minor = SHMEM_MINOR_VERSION; }"),
    ("void shmem_info_get_name(char *name)", "shmem::copy_name(name, SHMEM_VENDOR_STRING)"),
    ("void shmem_pcontrol(int level, ...)", ""),
    ("void start_pes(int npes)", "end_job_if_failed(CALL, shmem::start_pes(CALL))"),
    ("int _my_pe(void)", "weft_pe()"),
    ("int _num_pes(void)", "weft_pe_count()"),
    ("int shmem_num_pes(void)", "weft_pe_count()"),
])

MEMORY_FUNCTIONS = plain([
    ("void *shmem_malloc(size_t size)", "shmem::allocate(CALL, size)"),
    ("void *shmem_calloc(size_t count, size_t size)", "shmem::allocate_zeroed(CALL, times(count, size))"),
    ("void *shmem_align(size_t alignment, size_t size)", "shmem::allocate_aligned(CALL, alignment, size)"),
    ("void *shmem_realloc(void *ptr, size_t size)", "reallocate(CALL, ptr, size)"),
    ("void *shmem_malloc_with_hints(size_t size, long hints)", "shmem::allocate(CALL, size)"),
    ("void shmem_free(void *ptr)", "end_job_if_failed(CALL, release(CALL, ptr))"),
    ("void *shmalloc(size_t size)", "shmem::allocate(CALL, size)"),
    ("void *shmemalign(size_t alignment, size_t size)", "shmem::allocate_aligned(CALL, alignment, size)"),
    ("void *shrealloc(void *ptr, size_t size)", "reallocate(CALL, ptr, size)"),
    ("void shfree(void *ptr)", "end_job_if_failed(CALL, release(CALL, ptr))"),
])

CONFIG = "const shmem_team_config_t *config, long config_mask"
TEAM_FUNCTIONS = plain([
    ("int shmem_team_my_pe(shmem_team_t team)", "weft_team_pe(team)"),
    ("int shmem_team_n_pes(shmem_team_t team)", "weft_team_pe_count(team)"),
    ("int shmem_team_get_config(shmem_team_t team, long config_mask, shmem_team_config_t *config)", "shmem::team_config(team, config_mask, config)"),
    ("int shmem_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team)", "weft_team_translate(src_team, src_pe, dest_team)"),
    ("void *shmem_team_ptr(shmem_team_t team, const void *dest, int pe)", "weft_ptr(dest, weft_team_translate(team, pe, SHMEM_TEAM_WORLD))"),
    (f"int shmem_team_split_strided(shmem_team_t parent_team, int start, int stride, int size, {CONFIG}, shmem_team_t *new_team)", "shmem::split(parent_team, {start, stride, size}, {config, config_mask}, new_team)"),
    ("int shmem_team_split_2d(shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config, long xaxis_mask, shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config, long yaxis_mask, shmem_team_t *yaxis_team)", "shmem::split_2d(parent_team, xrange, {{xaxis_config, xaxis_mask}, xaxis_team}, {{yaxis_config, yaxis_mask}, yaxis_team})"),
    ("void shmem_team_destroy(shmem_team_t team)", "end_job_if_failed(CALL, shmem::destroy_team(team))"),
])

CONTEXT_FUNCTIONS = plain([
    ("int shmem_ctx_create(long options, shmem_ctx_t *ctx)", "shmem::create_context(SHMEM_TEAM_WORLD, ctx)"),
    ("int shmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx)", "shmem::create_context(team, ctx)"),
    ("int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team)", "shmem::team_of_context(ctx, team)"),
    ("void shmem_ctx_destroy(shmem_ctx_t ctx)", "end_job_if_failed(CALL, shmem::destroy_context(ctx))"),
    ("void shmem_ctx_session_start(shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t *config, long config_mask)", "end_job_if_failed(CALL, shmem::check_session({\"shmem_ctx_session_start\", ctx}))"),
    ("void shmem_ctx_session_stop(shmem_ctx_t ctx)", "end_job_if_failed(CALL, shmem::check_session({\"shmem_ctx_session_stop\", ctx}))"),
    ("void shmem_pe_quiet(const int *target_pes, size_t npes)", "end_job_if_failed(CALL, pe_quiet(CALL, {target_pes, npes}))"),
    ("void shmem_ctx_pe_quiet(shmem_ctx_t ctx, const int *target_pes, size_t npes)", "end_job_if_failed(CALL, shmem::pe_quiet_context({\"shmem_ctx_pe_quiet\", ctx}, {target_pes, npes}))"),
    ("void shmem_fence(void)", "end_job_if_failed(CALL, fence(CALL))"),
    ("void shmem_quiet(void)", "end_job_if_failed(CALL, quiet(CALL))"),
    ("void shmem_ctx_fence(shmem_ctx_t ctx)", "end_job_if_failed(CALL, shmem::fence_context({\"shmem_ctx_fence\", ctx}))"),
    ("void shmem_ctx_quiet(shmem_ctx_t ctx)", 'end_job_if_failed(CALL, shmem::quiet_context({"shmem_ctx_quiet", ctx}))'),
])

name_errors(TEAM_FUNCTIONS + CONTEXT_FUNCTIONS, of_none=True)

LOCK_FUNCTIONS = plain([
    ("void shmem_set_lock(long *lock)", "end_job_if_failed(CALL, shmem::set_lock(CALL, lock))"),
    ("void shmem_clear_lock(long *lock)", "end_job_if_failed(CALL, shmem::clear_lock(CALL, lock))"),
    ("int shmem_test_lock(long *lock)", "end_job_if_failed(CALL, shmem::test_lock(CALL, lock))"),
    ("void shmem_set_cache_inv(void)", ""),
    ("void shmem_set_cache_line_inv(void *dest)", ""),
    ("void shmem_clear_cache_inv(void)", ""),
    ("void shmem_clear_cache_line_inv(void *dest)", ""),
    ("void shmem_udcflush(void)", ""),
    ("void shmem_udcflush_line(void *dest)", ""),
])

SECTIONS = [
    Section("setup", "Setup, exit and queries.", SETUP_FUNCTIONS, unused=True),
    Section("memory", "The symmetric heap. Collective.", MEMORY_FUNCTIONS, unused=True),
    Section("teams", "Teams.", TEAM_FUNCTIONS),
    Section("contexts", "Contexts, order and completion.", CONTEXT_FUNCTIONS, unused=True),
    Section("rma", "Remote memory access.", RMA_FUNCTIONS),
    Section("amo", "Atomics; at the end the deprecated names.", AMO_FUNCTIONS),
    Section("signal", "Signals.", SIGNAL_FUNCTIONS),
    Section("wait", "Waiting for variables of this PE, and testing them.", WAIT_FUNCTIONS),
    Section("collectives", "Collectives on teams.", COLLECTIVE_FUNCTIONS),
    Section("active_sets", "Collectives on active sets; deprecated.", ACTIVE_SET_FUNCTIONS, unused=True),
    Section("locks", "Locks, and the cache operations, which do nothing.", LOCK_FUNCTIONS, unused=True),
]


def by_c_type(types):
    """One name per C type: a generic selection must not name a type twice."""
    same = {"int8_t": "signed char", "int16_t": "short", "int32_t": "int", "int64_t": "long", "uint8_t": "unsigned char",
            "uint16_t": "unsigned short", "uint32_t": "unsigned int", "uint64_t": "unsigned long", "size_t": "unsigned long",
            "ptrdiff_t": "long"}
    result = {}
    for name, c_type in types.items():
        result.setdefault(same.get(c_type, c_type), name)
    return {name: c_type for c_type, name in result.items()}


COMPLEX_ARGUMENT = re.compile(r"((?:const )?weft_)(complex[df]_t) \*(\w+)")


def of_c_complex(function, name):
    """C++'s overload for C's complex types, which have the same layout; empty for functions of other types."""
    if not COMPLEX_ARGUMENT.search(function.parameters):
        return ""
    overload = Prototype(function.returns, name, COMPLEX_ARGUMENT.sub(r"\1c_\2 *\3", function.parameters))
    given = {argument: f"reinterpret_cast<{kind}{rest} *>({argument})" for kind, rest, argument in COMPLEX_ARGUMENT.findall(function.parameters)}
    arguments = ", ".join(given.get(one, one) for one in function.arguments)
    return definition(f"inline {overload}", f"{'' if function.returns == 'void' else 'return '}{name}({arguments});")


# Lists of types for the generics; each becomes a macro of that name.
BY_POINTER = {"RMA": by_c_type(RMA), "AMO": by_c_type(AMO), "EXTENDED_AMO": by_c_type(EXTENDED_AMO),
              "BITWISE_AMO": by_c_type(BITWISE_AMO), "WAIT": by_c_type(WAIT), "REDUCE_BITS": by_c_type(REDUCE_BITS),
              "REDUCE_SUM": by_c_type(REDUCE_SUM), "OLD_AMO": OLD_AMO, "OLD_EXTENDED_AMO": OLD_EXTENDED_AMO}
# (name, what may come before the typed argument, list of types)
GENERICS = [
    *[(name, "CTX", "RMA") for name in "p g put get put_nbi get_nbi iput iget ibput ibget put_signal put_signal_nbi".split()],
    *[(f"atomic_{name}", "CTX", "EXTENDED_AMO") for name in "fetch fetch_nbi set swap swap_nbi".split()],
    *[(f"atomic_{name}", "CTX", "AMO") for name in
      "compare_swap compare_swap_nbi inc fetch_inc fetch_inc_nbi add fetch_add fetch_add_nbi".split()],
    *[(f"atomic_{form}{name}{end}", "CTX", "BITWISE_AMO") for name in ("and", "or", "xor")
      for form, end in (("", ""), ("fetch_", ""), ("fetch_", "_nbi"))],
    *[(name, "PICK", "OLD_EXTENDED_AMO") for name in ("fetch", "set", "swap")],
    *[(name, "PICK", "OLD_AMO") for name in ("cswap", "add", "fadd", "inc", "finc")],
    *[(f"{verb}{form}", "PICK", "WAIT") for verb in ("wait_until", "test")
      for form in ("", "_all", "_any", "_some", "_all_vector", "_any_vector", "_some_vector")],
    *[(name, "TEAM", "RMA") for name in "alltoall alltoalls broadcast collect fcollect".split()],
    *[(f"{name}_reduce", "TEAM", "REDUCE_BITS") for name in ("and", "or", "xor")],
    *[(f"{name}_reduce", "TEAM", "RMA") for name in ("max", "min")],
    *[(f"{name}_reduce", "TEAM", "REDUCE_SUM") for name in ("sum", "prod")],
    *[(f"sum_{name}", "TEAM", "REDUCE_SUM") for name in ("inscan", "exscan")],
]
SIGNAL_GENERICS = [f"#define shmem_signal_{name}(...) _Generic((WEFT_FIRST(__VA_ARGS__, 0)), shmem_ctx_t: shmem_ctx_signal_{name}, default: shmem_signal_{name})(__VA_ARGS__)"
                   for name in ("add", "set")]
SYNC_GENERIC = "#define shmem_sync(...) _Generic((WEFT_FIRST(__VA_ARGS__, 0)), shmem_team_t: shmem_team_sync, default: shmem_sync)(__VA_ARGS__)"
