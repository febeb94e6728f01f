"""Types of weft; the texts of the functions stand where they are defined."""

from ._weft import (
    Array as Array, Context as Context, Team as Team, atomic_add as atomic_add, atomic_and as atomic_and,
    atomic_compare_swap as atomic_compare_swap, atomic_fetch as atomic_fetch, atomic_fetch_add as atomic_fetch_add,
    atomic_fetch_and as atomic_fetch_and, atomic_fetch_inc as atomic_fetch_inc, atomic_fetch_or as atomic_fetch_or,
    atomic_fetch_xor as atomic_fetch_xor, atomic_inc as atomic_inc, atomic_or as atomic_or, atomic_set as atomic_set,
    atomic_swap as atomic_swap, atomic_xor as atomic_xor, barrier_all as barrier_all, fence as fence, get as get,
    get_nbi as get_nbi, iget as iget, iput as iput, put as put, put_nbi as put_nbi, quiet as quiet,
    signal_fetch as signal_fetch, signal_wait_until as signal_wait_until, sync_all as sync_all,
    wait_until_all as wait_until_all, wait_until_any as wait_until_any, wait_until_some as wait_until_some)
from .arrays import (
    empty as empty, free as free, is_mapped as is_mapped, register as register, unregister as unregister, zeros as zeros)
from .errors import (
    Error as Error, Forked as Forked, Freed as Freed, InvalidArgument as InvalidArgument, Mismatch as Mismatch,
    NoCuda as NoCuda, NotContiguous as NotContiguous, NotInitialized as NotInitialized, NoTorch as NoTorch,
    NotMapped as NotMapped, NotSymmetric as NotSymmetric, OutOfMemory as OutOfMemory, PeerLost as PeerLost,
    Timeout as Timeout, WrongDevice as WrongDevice, WrongDtype as WrongDtype, WrongShape as WrongShape,
    WrongVersion as WrongVersion)
from .job import (
    Job as Job, finalize as finalize, global_exit as global_exit, init as init, initialized as initialized,
    node_count as node_count, node_index as node_index, node_of as node_of, pe as pe, pe_count as pe_count,
    unique_id as unique_id)
from .operations import (
    put_signal as put_signal, put_signal_nbi as put_signal_nbi, putv as putv, putv_nbi as putv_nbi,
    putv_signal as putv_signal, putv_signal_nbi as putv_signal_nbi, signal_post as signal_post)
from .paths import (
    cmake_dir as cmake_dir, include_dir as include_dir, lib_dir as lib_dir, library as library,
    pkg_config_dir as pkg_config_dir, prefix as prefix)

__version__: str
node: Team
world: Team
