"""Joining and leaving a job, and what a process is in it."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import sys
import warnings
import zlib

from . import _exit
from .errors import Error, InvalidArgument
from .native import core

TYPE_CHECKING = False  # true for type checkers; here typing need not be imported
if TYPE_CHECKING:
    from typing import NoReturn

# Which PE this process or an ancestor is, so that a child that was spawned does not join as the
# same one.
_MARK = "_WEFT_PYTHON_PE"
_LAUNCHER_PREFIXES = ("WEFT_RENDEZVOUS", "PMI", "OMPI_", "SLURM_PROCID", "SLURM_STEP_ID", "TORCHELASTIC_RUN_ID", "RANK",
                      "MASTER_")


class Job:
    """This process in the job that weft.init joined; as a context manager, it leaves the job at the block's end.

    Where the block ends with an exception it does not leave: the other PEs would be waited for, and the program is
    about to end. A program that catches the exception outside calls weft.finalize itself.
    """

    @property
    def pe(self) -> int:
        """This PE's number, 0 to pe_count - 1."""
        return core.pe()

    @property
    def pe_count(self) -> int:
        """The number of PEs of the job."""
        return core.pe_count()

    def finalize(self) -> None:
        """weft.finalize."""
        finalize()

    def __enter__(self) -> Job:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if core.is_ready() and (kind is None or core.pe_count() == 1):
            finalize()

    def __repr__(self) -> str:
        return f"weft.Job(pe={self.pe}, pe_count={self.pe_count})" if core.is_ready() else "weft.Job(finalized)"


def init(group: object = None, *, pe: int | None = None, pe_count: int | None = None, unique_id: bytes | None = None,
         heap_size: int | str | None = None) -> Job:
    """Joins the job. Collective over its PEs.

    Without arguments: the job of the launcher (weft-run, torchrun, mpirun, srun), or a job of one PE without one.
    `group`: a process group of torch.distributed, or a communicator of mpi4py; its members become the PEs, by rank.
    `pe`, `pe_count` and `unique_id`: this process is PE `pe` of `pe_count` that hold the same id (weft.unique_id).

    `heap_size`: bytes of the symmetric heap of each PE in memory of the CPU, the same on all PEs: an integer, or text as "1.5G" (K, M, G,
    T: powers of 1024). None: WEFT_HEAP_SIZE, by default 256M. Pages cost nothing until they are touched. Heaps of GPUs grow by
    themselves (WEFT_DEVICE_HEAP_SIZE).

    Returns a Job, which is a context manager. Returns when all PEs have joined; after WEFT_BOOTSTRAP_TIMEOUT it raises
    weft.Timeout with the numbers of the missing ones. After finalize it can be called again.

    Afterwards, until finalize: an exception that ends the program ends the job, with its traceback; so does Ctrl-C while
    a call waits. A program that ends without finalize calls it at exit.
    """
    if core.is_ready():
        raise Error("weft.init: this process is in a job already; call weft.finalize() first")
    given = (pe, pe_count, unique_id)
    if group is not None:
        if any(value is not None for value in given):
            raise InvalidArgument("weft.init: give either group, or pe, pe_count and unique_id")
        pe, pe_count, unique_id = _meet_in(group)
    elif any(value is not None for value in given) and any(value is None for value in given):
        raise InvalidArgument("weft.init: pe, pe_count and unique_id belong together; give all three")
    with _set("WEFT_HEAP_SIZE", None if heap_size is None else _size(heap_size)):
        if unique_id is not None:
            core.init_with(pe, pe_count, bytes(unique_id))
        else:
            _refuse_spawned()
            core.init()
    os.environ[_MARK] = f"{os.getpid()}:{core.pe()}:{_launcher()}"
    _exit.install()
    return Job()


def finalize() -> None:
    """Leaves the job. Collective: completes all operations, waits for all PEs, and frees all symmetric arrays.

    numpy arrays and tensors over symmetric memory of the CPU keep their last contents, as memory of this process alone.
    Raises weft.NotInitialized without weft.init before it.
    """
    core.require_ready("weft.finalize")
    try:
        lost = core.finalize()
    finally:
        if not core.is_ready():  # it may be refused, where another PE is elsewhere
            _exit.remove()
            os.environ.pop(_MARK, None)
    if lost:
        warnings.warn(f"weft.finalize: {lost} bytes under numpy arrays or tensors that are alive are gone, because another "
                      "thread took their addresses: do not touch them; delete views before weft.finalize", RuntimeWarning,
                      stacklevel=2)


def initialized() -> bool:
    """True between init and finalize, in the process that called init."""
    return core.is_ready()


def global_exit(status: int = 1) -> NoReturn:
    """Ends all PEs of the job. Not collective; does not return. weft-run exits with `status`."""
    core.require_ready("weft.global_exit")
    sys.stdout.flush()
    sys.stderr.flush()
    core.global_exit(status)


def unique_id() -> bytes:
    """256 bytes with which processes that start by themselves find each other; any one PE makes it and passes it on.

    Who reads it can join the job. Not collective. The process that made it must take part in the job.
    """
    return core.unique_id()


def pe() -> int:
    """This PE's number, 0 to pe_count() - 1."""
    return core.pe()


def pe_count() -> int:
    """The number of PEs of the job."""
    return core.pe_count()


def node_index() -> int:
    """The number of this PE's node: the PEs that share memory. weft.node is the team of these PEs."""
    return core.node()


def node_count() -> int:
    """The number of nodes of the job."""
    return core.node_count()


def node_of(pe: int) -> int:
    """The number of the node of `pe`."""
    return core.node_of(pe)


def _size(heap_size):
    """As the variable takes it."""
    text = str(heap_size) if isinstance(heap_size, str) or hasattr(heap_size, "__index__") and not isinstance(heap_size, bool) else ""
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([KMGT]?)(i?B)?\s*", text, re.IGNORECASE)
    if match is None or float(match[1]) == 0:
        raise InvalidArgument(f"weft.init: heap_size is {heap_size!r}; give bytes, more than 0, or text such as '512M' or '1.5G'")
    return match[1] + match[2].upper()


@contextlib.contextmanager
def _set(name, value):
    """In the environment, as the library reads it; None: nothing."""
    before = os.environ.get(name)
    if value is not None:
        os.environ[name] = value
    try:
        yield
    finally:
        if value is not None and before is None:
            del os.environ[name]
        elif value is not None:
            os.environ[name] = before


def _launcher():
    """The variables by which this process would join a job, as one number."""
    found = sorted(item for item in os.environ.items() if item[0].startswith(_LAUNCHER_PREFIXES))
    return format(zlib.crc32(repr(found).encode()), "x")


def _refuse_spawned():
    mark = os.environ.get(_MARK, "").split(":")
    if len(mark) != 3 or mark[0] == str(os.getpid()) or mark[2] != _launcher() or \
            os.environ.get("WEFT_BOOTSTRAP") == "single":
        return
    raise Error(f"weft.init: this process was started by PE {mark[1]} (process {mark[0]}), and would join the job as the "
                "same PE; call Weft in the PE, or set WEFT_BOOTSTRAP=single for a job of this process alone")


def _meet_in(group):
    """pe, pe_count and the id, passed through a process group of torch or a communicator of mpi4py."""
    if hasattr(group, "Get_rank") and hasattr(group, "bcast"):
        rank, size = group.Get_rank(), group.Get_size()
        return rank, size, group.bcast(core.unique_id() if rank == 0 else None, root=0)
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not hasattr(group, "rank"):
        raise InvalidArgument(f"weft.init: group is a {type(group).__name__}; give a process group of torch.distributed, "
                              "or a communicator of mpi4py")
    rank, size = distributed.get_rank(group), distributed.get_world_size(group)
    box = [core.unique_id() if rank == 0 else None]
    distributed.broadcast_object_list(box, src=distributed.get_global_rank(group, 0), group=group)
    return rank, size, box[0]


def _at_exit():
    if core.is_ready():
        _exit.leave(finalize)


os.register_at_fork(after_in_child=core.mark_forked)
atexit.register(_at_exit)
