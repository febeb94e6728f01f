"""NVSHMEM's functions by family, and what each calls on the GPU and on the host. Names, types and meanings are those of NVSHMEM's public documentation (each family names its page), and of
OpenSHMEM 1.5 where that documentation's tables of types are narrower than its own text."""
import dataclasses
import re

from .c_types import C_INTEGERS, FIXED, REAL, SIZES, chosen
from .core import Prototype, of_type

HALVES = {"half": "half", "bfloat16": "__nv_bfloat16"}
RMA = chosen(REAL, "float double") | HALVES | C_INTEGERS | FIXED | SIZES
AMO = chosen(RMA, "int long longlong uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff")
EXTENDED_AMO = chosen(RMA, "float double") | AMO
BITWISE_AMO = chosen(RMA, "uint ulong ulonglong int32 int64 uint32 uint64")
WAIT = chosen(RMA, "short int long longlong ushort uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff")
REDUCE_BITS = chosen(RMA, "uchar ushort uint ulong ulonglong") | FIXED | chosen(RMA, "size")
BITS = (8, 16, 32, 64, 128)
SCOPES = ("thread", "warp", "block")


@dataclasses.dataclass
class Function(Prototype):
    """`gpu` is what a kernel calls, in namespace weft_nvshmem; `host` is what the library calls, in weft::nvshmem.
    None: there is no such function there."""
    gpu: "str | None" = None
    host: "str | None" = None


@dataclasses.dataclass
class Family:
    file: str
    doc: str
    page: str
    functions: list


def function(prototype, gpu=None, host=None):
    """CALL stands for the function as an error names it, with the stream that it was given."""
    parsed = Prototype.parse(prototype)
    call = f'{{"{parsed.name}", stream}}' if "cudaStream_t stream" in parsed.parameters else f'{{"{parsed.name}"}}'
    return Function(parsed.returns, parsed.name, parsed.parameters, gpu, host and host.replace("CALL", call))


def typed(types, forms):
    """Each form for each type: TYPE is the name, T the C type, BYTES what `nelems` elements have, PER one of them."""
    made = []
    for name, c_type in types.items():
        for form in forms:
            def fill(part):
                if part is None:
                    return None
                part = of_type(part, name, c_type)
                return part.replace("BYTES", f"nelems * sizeof({c_type})").replace("PER", f"sizeof({c_type})")
            made.append(function(*map(fill, form)))
    return made


def sized(forms):
    """The same with SIZE, 8 to 128 bits, and `void`."""
    made = []
    for bits in BITS:
        for form in forms:
            def fill(part):
                if part is None:
                    return None
                part = part.replace("TYPE_iput", f"iput{bits}").replace("TYPE_iget", f"iget{bits}")
                part = part.replace("TYPE_put", f"put{bits}").replace("TYPE_get", f"get{bits}")
                part = part.replace("BYTES", f"nelems * {bits // 8}").replace("PER", str(bits // 8))
                return re.sub(r"\bT\b", "void", part)
            made.append(function(*map(fill, form)))
    return made


def memory(forms):
    """The same in bytes: putmem, getmem."""
    made = []
    for form in forms:
        def fill(part):
            if part is None:
                return None
            part = part.replace("TYPE_put", "putmem").replace("TYPE_get", "getmem").replace("BYTES", "nelems").replace("PER", "1")
            for word in ("alltoall", "broadcast", "fcollect"):
                part = part.replace(f"TYPE_{word}", f"{word}mem")
            return re.sub(r"\bT\b", "void", part)
        made.append(function(*map(fill, form)))
    return made


def plain(forms):
    return [function(*form) for form in forms]


def scopes(returns, verb, parameters, call, host, gpu_class):
    """nvshmem_VERB on both sides, nvshmemx_VERB_warp and _block in kernels, nvshmemx_VERB_on_stream on the host. `call` is
    the call's arguments, `host` the library's function, which is told the stream with
    the call's name."""
    gpu_verb = verb.rpartition("TYPE_")[2]
    forms = [(f"{returns} nvshmem_{verb}({parameters})", f"Thread{gpu_class}::{gpu_verb}({call})", f"{host}(CALL, {call})" if call else f"{host}(CALL)")]
    for scope in ("warp", "block"):
        forms.append((f"{returns} nvshmemx_{verb}_{scope}({parameters})", f"{scope.title()}{gpu_class}::{gpu_verb}({call})"))
    stream = "cudaStream_t stream" if parameters == "void" else f"{parameters}, cudaStream_t stream"
    forms.append((f"{returns} nvshmemx_{verb}_on_stream({stream})", None, f"{host}(CALL, {call})" if call else f"{host}(CALL)"))
    return forms


# ---- Setup, memory, teams

SETUP = plain([
    ("void nvshmem_init(void)", None, "init(CALL)"),
    ("int nvshmem_init_thread(int requested, int *provided)", None, "init_thread(CALL, requested, provided)"),
    ("void nvshmem_query_thread(int *provided)", None, "query_thread(provided)"),
    ("int nvshmemx_init_attr(unsigned int flags, nvshmemx_init_attr_t *attributes)", None, "init_attr(CALL, flags, attributes)"),
    ("int nvshmemx_hostlib_init_attr(unsigned int flags, nvshmemx_init_attr_t *attributes)", None, "init_attr(CALL, flags, attributes)"),
    ("void nvshmemx_hostlib_finalize(void)", None, "finalize(CALL)"),
    ("int nvshmemx_get_uniqueid(nvshmemx_uniqueid_t *id)", None, "get_uniqueid(CALL, id)"),
    ("int nvshmemx_set_attr_uniqueid_args(int rank, int nranks, const nvshmemx_uniqueid_t *id, nvshmemx_init_attr_t *attr)", None, "set_attr_uniqueid_args(rank, nranks, id, attr)"),
    ("int nvshmemx_set_attr_mpi_comm_args(void *mpi_comm, nvshmemx_init_attr_t *attr)", None, "set_attr_mpi_comm_args(mpi_comm, attr)"),
    ("void nvshmem_finalize(void)", None, "finalize(CALL)"),
    ("int nvshmemx_init_status(void)", None, "init_status()"),
    ("void nvshmem_global_exit(int status)", "global_exit(status)", "global_exit(status)"),
    ("int nvshmem_my_pe(void)", "my_pe()", "my_pe()"),
    ("int nvshmem_n_pes(void)", "n_pes()", "n_pes()"),
    ("void nvshmem_info_get_version(int *major, int *minor)", "info_get_version(major, minor)", "info_get_version(major, minor)"),
    ("void nvshmem_info_get_name(char *name)", "info_get_name(name)", "info_get_name(name)"),
    ("void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch)", "vendor_get_version_info(major, minor, patch)", "vendor_get_version_info(major, minor, patch)"),
    ("int nvshmemx_cumodule_init(CUmodule module)", None, "cumodule_init(CALL, module)"),
    ("int nvshmemx_cumodule_finalize(CUmodule module)", None, "cumodule_finalize(CALL, module)"),
    ("int nvshmemx_culibrary_init(CUlibrary library)", None, "culibrary_init(CALL, library)"),
    ("int nvshmemx_culibrary_finalize(CUlibrary library)", None, "culibrary_finalize(CALL, library)"),
])

MEMORY = plain([
    ("void *nvshmem_malloc(size_t size)", None, "allocate(CALL, size)"),
    ("void *nvshmem_calloc(size_t count, size_t size)", None, "callocate(CALL, count, size)"),
    ("void *nvshmem_align(size_t alignment, size_t size)", None, "allocate_aligned(CALL, alignment, size)"),
    ("void nvshmem_free(void *ptr)", None, "release(CALL, ptr)"),
    ("void *nvshmem_ptr(const void *dest, int pe)", "ptr(dest, pe)", "ptr(dest, pe)"),
    ("void *nvshmemx_mc_ptr(nvshmem_team_t team, const void *dest)", "mc_ptr(team, dest)", "mc_ptr(team, dest)"),
    ("int nvshmemx_buffer_register(void *addr, size_t length)", None, "buffer_register(CALL, addr, length)"),
    ("int nvshmemx_buffer_unregister(void *addr)", None, "buffer_unregister(CALL, addr)"),
    ("void nvshmemx_buffer_unregister_all(void)", None, "buffer_unregister_all(CALL)"),
    ("void *nvshmemx_buffer_register_symmetric(void *user_buffer, size_t size, int flags)", None, "buffer_register_symmetric(CALL, user_buffer, size, flags)"),
    ("void *nvshmemx_buffer_register_symmetric_at_preferred_address(void *user_buffer, size_t size, void *preferred_addr, int flags)", None,
     "buffer_register_symmetric_at(CALL, user_buffer, size, preferred_addr, flags)"),
    ("int nvshmemx_buffer_unregister_symmetric(void *ptr, size_t size)", None, "buffer_unregister_symmetric(CALL, ptr, size)"),
])

TEAMS = plain([
    ("int nvshmem_team_my_pe(nvshmem_team_t team)", "team_my_pe(team)", "team_my_pe(team)"),
    ("int nvshmem_team_n_pes(nvshmem_team_t team)", "team_n_pes(team)", "team_n_pes(team)"),
    ("int nvshmem_team_translate_pe(nvshmem_team_t src_team, int src_pe, nvshmem_team_t dest_team)", "team_translate_pe(src_team, src_pe, dest_team)", "team_translate_pe(src_team, src_pe, dest_team)"),
    ("void nvshmem_team_get_config(nvshmem_team_t team, nvshmem_team_config_t *config)", None, "team_get_config(team, config)"),
    ("int nvshmem_team_split_strided(nvshmem_team_t parent_team, int start, int stride, int size, const nvshmem_team_config_t *config, long config_mask, nvshmem_team_t *new_team)", None,
     "team_split_strided(CALL, parent_team, {start, stride, size}, {config, config_mask}, new_team)"),
    ("int nvshmem_team_split_2d(nvshmem_team_t parent_team, int xrange, const nvshmem_team_config_t *xaxis_config, long xaxis_mask, nvshmem_team_t *xaxis_team, const nvshmem_team_config_t *yaxis_config, long yaxis_mask, nvshmem_team_t *yaxis_team)", None,
     "team_split_2d(CALL, parent_team, xrange, {{xaxis_config, xaxis_mask}, xaxis_team}, {{yaxis_config, yaxis_mask}, yaxis_team})"),
    ("int nvshmemx_team_get_uniqueid(nvshmemx_team_uniqueid_t *uniqueid)", None, "team_get_uniqueid(CALL, uniqueid)"),
    ("int nvshmemx_team_init(nvshmem_team_t *team, nvshmem_team_config_t *config, long config_mask, int npes, int pe_idx_in_team)", None,
     "team_init(CALL, team, {config, config_mask}, {pe_idx_in_team, npes})"),
    ("void nvshmem_team_destroy(nvshmem_team_t team)", None, "team_destroy(CALL, team)"),
])

# ---- Remote memory access

TRANSFER = "T *dest, const T *source, size_t nelems, int pe"
STRIDED = "T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe"
MOVES = [form for verb in ("put", "get", "put_nbi", "get_nbi")
         for form in scopes("void", f"TYPE_{verb}", TRANSFER, "dest, source, BYTES, pe", verb, "Rma")]
STRIDES = [form for verb in ("iput", "iget")
           for form in scopes("void", f"TYPE_{verb}", STRIDED, "dest, source, {dst, sst, nelems, PER}, pe", verb, "Rma")]
VALUES = [
    ("void nvshmem_TYPE_p(T *dest, T value, int pe)", "p(dest, value, pe)", "p(CALL, dest, &value, PER, pe)"),
    ("T nvshmem_TYPE_g(const T *source, int pe)", "g(source, pe)", "g<T>(CALL, source, pe)"),
    ("void nvshmemx_TYPE_p_on_stream(T *dest, T value, int pe, cudaStream_t stream)", None, "p(CALL, dest, &value, PER, pe)"),
]
RMA_FUNCTIONS = [*memory(MOVES), *sized([*MOVES, *STRIDES]), *typed(RMA, [*VALUES, *MOVES, *STRIDES])]

# ---- Signals

SIGNAL = "uint64_t *sig_addr, uint64_t signal, int sig_op, int pe"
PUT_SIGNAL = [form for verb in ("put_signal", "put_signal_nbi")
              for form in scopes("void", f"TYPE_{verb}", f"T *dest, const T *source, size_t nelems, {SIGNAL}",
                                 "dest, source, BYTES, {sig_addr, signal, sig_op}, pe", verb, "Rma")]


def signal_sized(bits):
    forms = []
    for form in PUT_SIGNAL:
        def fill(part):
            if part is None:
                return None
            return re.sub(r"\bT\b", "void", part.replace("TYPE_put", f"put{bits}").replace("BYTES", f"nelems * {bits // 8}"))
        forms.append(function(*map(fill, form)))
    return forms


SIGNAL_FUNCTIONS = [
    *memory(PUT_SIGNAL), *[made for bits in BITS for made in signal_sized(bits)], *typed(RMA, PUT_SIGNAL),
    *plain([
        (f"void nvshmemx_signal_op({SIGNAL})", "signal_op(sig_addr, signal, sig_op, pe)", "signal_op(CALL, {sig_addr, signal, sig_op}, pe)"),
        (f"void nvshmemx_signal_op_on_stream({SIGNAL}, cudaStream_t stream)", None, "signal_op(CALL, {sig_addr, signal, sig_op}, pe)"),
        ("uint64_t nvshmem_signal_fetch(const uint64_t *sig_addr)", "signal_fetch(sig_addr)"),
        ("uint64_t nvshmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_val)", "signal_wait_until(sig_addr, cmp, cmp_val)", "signal_wait_until(CALL, sig_addr, cmp, cmp_val)"),
        ("void nvshmemx_signal_wait_until_on_stream(uint64_t *sig_addr, int cmp, uint64_t cmp_val, cudaStream_t stream)", None, "signal_wait_until(CALL, sig_addr, cmp, cmp_val)"),
    ]),
    *typed(WAIT, [("void nvshmemx_TYPE_signal(T *dest, const T value, int pe)", "set_word(dest, value, pe)")]),
]

# ---- Atomics

ONE = "T *dest, T value, int pe"


def update(name):
    return [(f"void nvshmem_TYPE_atomic_{name}({ONE})", f"atomic_{name}(dest, value, pe)"),
            (f"T nvshmem_TYPE_atomic_fetch_{name}({ONE})", f"atomic_fetch_{name}(dest, value, pe)")]


AMO_FUNCTIONS = [
    *typed(EXTENDED_AMO, [
        ("T nvshmem_TYPE_atomic_fetch(const T *source, int pe)", "atomic_fetch(source, pe)"),
        (f"void nvshmem_TYPE_atomic_set({ONE})", "atomic_set(dest, value, pe)"),
        (f"T nvshmem_TYPE_atomic_swap({ONE})", "atomic_swap(dest, value, pe)"),
    ]),
    *typed(AMO, [
        ("T nvshmem_TYPE_atomic_compare_swap(T *dest, T cond, T value, int pe)", "atomic_compare_swap(dest, cond, value, pe)"),
        ("void nvshmem_TYPE_atomic_inc(T *dest, int pe)", "atomic_add(dest, T{1}, pe)"),
        ("T nvshmem_TYPE_atomic_fetch_inc(T *dest, int pe)", "atomic_fetch_add(dest, T{1}, pe)"),
        *update("add"),
    ]),
    *typed(BITWISE_AMO, [*update("and"), *update("or"), *update("xor")]),
]
for one in AMO_FUNCTIONS:  # `unsigned int{1}` is not C++
    one.gpu = re.sub(r", ([\w ]+)\{1\}, pe", r", static_cast<\1>(1), pe", one.gpu)

# ---- Waits

SET = "T *ivars, size_t nelems, const int *status, int cmp"


def arrays(verb, all_returns):
    forms = []
    for suffix, value in (("", "T cmp_value"), ("_vector", "T *cmp_values")):
        given = value.split()[-1].lstrip("*")
        forms += [
            (f"{all_returns} nvshmem_TYPE_{verb}_all{suffix}({SET}, {value})", f"{verb}_all({{ivars, nelems, status, cmp}}, {given})"),
            (f"size_t nvshmem_TYPE_{verb}_any{suffix}({SET}, {value})", f"{verb}_any({{ivars, nelems, status, cmp}}, {given})"),
            (f"size_t nvshmem_TYPE_{verb}_some{suffix}({SET.replace('nelems, ', 'nelems, size_t *indices, ')}, {value})", f"{verb}_some({{ivars, nelems, status, cmp}}, indices, {given})"),
        ]
    return forms


def with_set(forms):
    """C++ cannot deduce a type from braces."""
    return [(prototype, gpu.replace("({ivars", "(::weft_nvshmem::WaitSet<T>{ivars")) for prototype, gpu in forms]


WAIT_FUNCTIONS = typed(WAIT, [
    ("void nvshmem_TYPE_wait_until(T *ivar, int cmp, T cmp_value)", "wait_until(ivar, cmp, cmp_value)"),
    ("void nvshmem_TYPE_wait(T *ivar, T cmp_value)", "wait_until(ivar, NVSHMEM_CMP_NE, cmp_value)"),
    ("void nvshmemx_TYPE_wait_until_on_stream(T *ivar, int cmp, T cmp_value, cudaStream_t stream)", None, "wait_until<T>(CALL, {ivar, 1, nullptr, cmp}, cmp_value)"),
    ("void nvshmemx_TYPE_wait_on_stream(T *ivar, T cmp_value, cudaStream_t stream)", None, "wait_until<T>(CALL, {ivar, 1, nullptr, NVSHMEM_CMP_NE}, cmp_value)"),
    (f"void nvshmemx_TYPE_wait_until_all_on_stream({SET}, T cmp_value, cudaStream_t stream)", None, "wait_until<T>(CALL, {ivars, nelems, status, cmp}, cmp_value)"),
    (f"void nvshmemx_TYPE_wait_until_all_vector_on_stream({SET}, T *cmp_values, cudaStream_t stream)", None, "wait_until_vector<T>(CALL, {ivars, nelems, status, cmp}, cmp_values)"),
    *with_set(arrays("wait_until", "void")),
    ("int nvshmem_TYPE_test(T *ivar, int cmp, T cmp_value)", "test(ivar, cmp, cmp_value)"),
    *with_set(arrays("test", "int")),
])

# ---- Order and synchronization

ORDER = plain([
    ("void nvshmem_fence(void)", "fence()", "fence(CALL)"),
    ("void nvshmem_quiet(void)", "quiet()", "quiet(CALL)"),
    ("void nvshmemx_quiet_on_stream(cudaStream_t stream)", None, "quiet(CALL)"),
    # Local completion, of which quiet is more than enough: where peers are mapped there is nothing
    # to wait for but stores.
    ("void nvshmemx_flush(void)", "quiet()"),
    ("void nvshmemx_flush_warp(void)", "WarpRma::quiet()"),
    ("void nvshmemx_flush_block(void)", "BlockRma::quiet()"),
    ("void nvshmemx_flush_on_stream(cudaStream_t stream)", None, "quiet(CALL)"),
    *scopes("void", "barrier_all", "void", "", "barrier_all", "Collectives"),
    *scopes("void", "sync_all", "void", "", "sync_all", "Collectives"),
    *scopes("int", "barrier", "nvshmem_team_t team", "team", "barrier", "Collectives"),
    *scopes("int", "sync", "nvshmem_team_t team", "team", "sync", "Collectives"),
    *scopes("int", "team_sync", "nvshmem_team_t team", "team", "sync", "Collectives"),
])
for one in ORDER:
    one.gpu = one.gpu and one.gpu.replace("::team_sync(", "::sync(")

# ---- Collectives

SIDES = "nvshmem_team_t team, T *dest, const T *source, size_t nelems"
EXCHANGES = [
    *scopes("int", "TYPE_alltoall", SIDES, "team, dest, source, BYTES", "alltoall", "Collectives"),
    *scopes("int", "TYPE_broadcast", f"{SIDES}, int PE_root", "team, dest, source, BYTES, PE_root", "broadcast", "Collectives"),
    *scopes("int", "TYPE_fcollect", SIDES, "team, dest, source, BYTES", "fcollect", "Collectives"),
]
COLLECTIVE_FUNCTIONS = [*memory(EXCHANGES), *typed(RMA, EXCHANGES)]


def reduce(op):
    """In kernels with the type that stands for T named, so that no function has to be made of a template for each T."""
    sides = "nvshmem_team_t team, T *dest, const T *source, size_t nreduce"
    word = "Canonical" if op in ("min", "max") else "Bits"  # sums, products and bits do not depend on the sign
    made = []
    for verb in ("reduce", "reducescatter"):
        for prototype, gpu, *host in scopes("int", f"TYPE_{op}_{verb}", sides, "team, dest, source, nreduce", verb, "Collectives"):
            host = [host[0].replace("(CALL,", f"(CALL, Operation::{op.title()},")] if host else []
            made.append((prototype, gpu and gpu.replace("(team", f"<::weft_nvshmem::{word}<T>>(team"), *host))
    return made


REDUCTIONS = [*typed(REDUCE_BITS, [form for op in ("and", "or", "xor") for form in reduce(op)]),
              *typed(RMA, [form for op in ("min", "max", "sum", "prod") for form in reduce(op)])]

# ---- Queue pairs: every handle is the default one, as the documentation allows.


def on_qp(one):
    """nvshmemx_qp_NAME with the handle as the last argument, in kernels alone."""
    name = re.sub(r"^nvshmemx?_", "nvshmemx_qp_", one.name)
    return Function(one.returns, name, f"{one.parameters}, nvshmemx_qp_handle_t qp_index", one.gpu)


QP = [
    function("int nvshmemx_qp_create(int num_qps, nvshmemx_qp_handle_t **out_qp_array)", None, "qp_create(CALL, num_qps, out_qp_array)"),
    *[on_qp(one) for one in [*RMA_FUNCTIONS, *SIGNAL_FUNCTIONS] if one.gpu and not re.search(r"_(iput|iget|signal_fetch|signal_wait_until)|^nvshmemx_\w+_signal$|nvshmemx?_i(put|get)\d", one.name)],
    *plain([(f"void nvshmemx_qp_{verb}{suffix}(int pe, nvshmemx_qp_handle_t *qp_handle, int num_qps)", f"{scope}Rma::{verb}()")
            for verb in ("fence", "quiet") for suffix, scope in (("", "Thread"), ("_warp", "Warp"), ("_block", "Block"))]),
]

FAMILIES = [
    Family("setup", "Setup, exit, and queries.", "api/setup", SETUP),
    Family("memory", "Symmetric memory.", "api/memory", MEMORY),
    Family("teams", "Teams.", "api/teams", TEAMS),
    Family("rma", "Put, get, p, g, iput and iget.", "api/rma", RMA_FUNCTIONS),
    Family("signal", "Put with signal, and signals.", "api/signal", SIGNAL_FUNCTIONS),
    Family("amo", "Atomics.", "api/amo", AMO_FUNCTIONS),
    Family("wait", "Waits and tests.", "api/sync", WAIT_FUNCTIONS),
    Family("order", "Fence, quiet, barriers and syncs.", "api/ordering, api/collectives", ORDER),
    Family("collectives", "Alltoall, broadcast and fcollect.", "api/collectives", COLLECTIVE_FUNCTIONS),
    Family("reductions", "Reductions and reduce-scatters.", "api/collectives", REDUCTIONS),
    Family("qp", "Queue pairs.", "api/qp", QP),
]
