"""The names that NVSHMEM's documentation has, family by family, stated again and apart from the generator's table: each is declared
in the headers, and those of the host are exported. Families that no known program uses (tiles, TMA, counted signals, regions) are
not here; docs/NVSHMEM.md names them as missing."""
import pathlib
import re

import pytest

from nvshmem_runs import well

PROJECT = pathlib.Path(__file__).resolve().parents[2]
WIDTHS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
RMA = ["float", "double", "char", "schar", "short", "int", "long", "longlong", "uchar", "ushort", "uint", "ulong", "ulonglong", *WIDTHS, "size",
       "ptrdiff", "half", "bfloat16"]
WORDS = ["int", "long", "longlong", "uint", "ulong", "ulonglong", "int32", "int64", "uint32", "uint64", "size", "ptrdiff"]
BITS = ["uint", "ulong", "ulonglong", "int32", "int64", "uint32", "uint64"]
WAITS = [*WORDS, "short", "ushort"]
SIZES = ["8", "16", "32", "64", "128"]
SCOPES = ["", "_warp", "_block"]
BIT_REDUCTIONS = ["uchar", "ushort", "uint", "ulong", "ulonglong", *WIDTHS, "size"]


def scoped(names):
    """Calls of a thread, a warp and a block: the last two are NVSHMEM's own."""
    return [name.replace("nvshmem_", "nvshmemx_", 1) + scope if scope else name for name in names for scope in SCOPES]


def on_stream(names):
    return [name.replace("nvshmem_", "nvshmemx_", 1) + "_on_stream" for name in names]


def data(verb, blocking=("", "_nbi")):
    """put, get, put_signal: by type, by size, by bytes."""
    kind = verb.partition("_")
    by_size = [f"nvshmem_{kind[0]}{size}{kind[1]}{kind[2]}{nbi}" for size in [*SIZES, "mem"] for nbi in blocking]
    return [f"nvshmem_{name}_{verb}{nbi}" for name in RMA for nbi in blocking] + by_size


def strided(verb):
    return [f"nvshmem_{name}_{verb}" for name in RMA] + [f"nvshmem_{verb}{size}" for size in SIZES]


def typed(types, *calls):
    return [f"nvshmem_{name}_{call}" for name in types for call in calls]


MEETINGS = ["nvshmem_barrier", "nvshmem_barrier_all", "nvshmem_sync_all", "nvshmem_team_sync"]
EXCHANGES = typed(RMA, "alltoall", "broadcast", "fcollect") + [f"nvshmem_{name}mem" for name in ("alltoall", "broadcast", "fcollect")]
REDUCTIONS = [f"nvshmem_{name}_{operation}_{kind}" for kind in ("reduce", "reducescatter") for operation in ("sum", "prod", "min", "max", "and", "or", "xor")
              for name in (BIT_REDUCTIONS if operation in ("and", "or", "xor") else RMA)]
QUEUE = [name.replace("nvshmem_", "nvshmemx_qp_", 1) for name in data("put") + data("get") + data("put_signal") + typed(RMA, "p", "g")]

HOST = {
    "set-up": """nvshmem_init nvshmem_init_thread nvshmem_query_thread nvshmemx_init_attr nvshmemx_get_uniqueid nvshmemx_set_attr_uniqueid_args
        nvshmemx_set_attr_mpi_comm_args nvshmemx_hostlib_init_attr nvshmemx_hostlib_finalize nvshmem_finalize nvshmem_global_exit nvshmemx_init_status
        nvshmem_my_pe nvshmem_n_pes nvshmem_info_get_version nvshmem_info_get_name nvshmemx_vendor_get_version_info""".split(),
    "modules": ["nvshmemx_cumodule_init", "nvshmemx_cumodule_finalize", "nvshmemx_culibrary_init", "nvshmemx_culibrary_finalize"],
    "memory": """nvshmem_malloc nvshmem_calloc nvshmem_align nvshmem_free nvshmem_ptr nvshmemx_mc_ptr nvshmemx_buffer_register nvshmemx_buffer_unregister
        nvshmemx_buffer_unregister_all nvshmemx_buffer_register_symmetric nvshmemx_buffer_register_symmetric_at_preferred_address
        nvshmemx_buffer_unregister_symmetric""".split(),
    "teams": """nvshmem_team_my_pe nvshmem_team_n_pes nvshmem_team_translate_pe nvshmem_team_split_strided nvshmem_team_split_2d nvshmem_team_destroy
        nvshmem_team_get_config""".split(),
    "order": ["nvshmem_fence", "nvshmem_quiet", "nvshmemx_quiet_on_stream", "nvshmemx_flush_on_stream"],
    "put and get": data("put") + data("get") + typed(RMA, "p", "g") + strided("iput") + strided("iget"),
    "put and get on streams": on_stream(data("put") + data("get") + typed(RMA, "p") + strided("iput") + strided("iget")),
    "put_signal": data("put_signal"),
    "signals on streams": on_stream(data("put_signal")) + ["nvshmemx_signal_op_on_stream", "nvshmemx_signal_wait_until_on_stream"],
    "waits on streams": on_stream(typed(WAITS, "wait", "wait_until", "wait_until_all", "wait_until_all_vector")),
    "meetings": MEETINGS + on_stream(MEETINGS),
    "exchanges": EXCHANGES + on_stream(EXCHANGES),
    "reductions": REDUCTIONS + on_stream(REDUCTIONS),
    "queue pairs": ["nvshmemx_qp_create"],
}
DEVICE = {
    "order": ["nvshmem_fence", "nvshmem_quiet", *scoped(["nvshmemx_flush"])],
    "put and get": scoped(data("put") + data("get") + strided("iput") + strided("iget")) + typed(RMA, "p", "g"),
    "signals": scoped(data("put_signal")) + ["nvshmemx_signal_op", "nvshmem_signal_fetch", "nvshmem_signal_wait_until"],
    "atomics": typed([*WORDS, "float", "double"], "atomic_fetch", "atomic_set", "atomic_swap")
    + typed(WORDS, "atomic_compare_swap", "atomic_inc", "atomic_fetch_inc", "atomic_add", "atomic_fetch_add")
    + typed(BITS, "atomic_and", "atomic_fetch_and", "atomic_or", "atomic_fetch_or", "atomic_xor", "atomic_fetch_xor"),
    "waits": typed(WAITS, "wait") + typed(WAITS, *(f"{call}{rest}" for call in ("wait_until", "test")
                                                   for rest in ("", "_all", "_any", "_some", "_all_vector", "_any_vector", "_some_vector"))),
    "meetings": scoped(MEETINGS),
    "exchanges": scoped(EXCHANGES),
    "reductions": scoped(REDUCTIONS),
    "queue pairs": QUEUE + ["nvshmemx_qp_signal_op", "nvshmemx_qp_fence", "nvshmemx_qp_quiet"],
}
COMPILED_IN = ["nvshmemx_collective_launch", "nvshmemx_collective_launch_query_gridsize"]


@pytest.fixture(scope="module")
def declared():
    text = "".join(file.read_text() for file in (PROJECT / "include/nvshmem").rglob("*") if file.is_file())
    return set(re.findall(r"\b(nvshmemx?_\w+)\s*\(", text))


@pytest.fixture(scope="module")
def exported(prefix):
    return {line.split("@")[0] for line in well("nm", "--dynamic", "--defined-only", "--format=just-symbols", prefix / "lib" / "libweft_nvshmem_host.so.3").split()}


@pytest.mark.parametrize("family", HOST)
def test_the_hosts_names_are_declared_and_exported(declared, exported, family):
    assert [name for name in HOST[family] if name not in declared] == []
    assert [name for name in HOST[family] if name not in exported] == []


@pytest.mark.parametrize("family", DEVICE)
def test_the_names_of_kernels_are_declared(declared, family):
    assert [name for name in DEVICE[family] if name not in declared] == []


def test_what_is_compiled_into_programs_is_declared(declared):
    assert [name for name in COMPILED_IN if name not in declared] == []
