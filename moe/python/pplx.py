"""The names of pplx_kernels over weft.moe, for programs that import pplx_kernels. Tensors of the CPU or of this PE's GPU.

    import weft.moe.pplx
    weft.moe.pplx.install()     # from now on `import pplx_kernels` gives this module; nothing is shadowed without it

AllToAll.dispatch and AllToAll.combine, and the functions of pplx_kernels.nvshmem with which programs start. What differs:
num_experts need not be a multiple of world_size, rows of a wrong shape raise on all ranks, and intranode and internode are
the same. Rows travel as bytes, so scales may be by token, by block or by tensor.

Threads: one at a time. Every rank makes the same calls in the same order.
"""

import copy
import inspect
import sys
import types

import torch

from .. import arrays, errors, job, operations
from .arguments import seconds
from .exchange import Exchange
from .operators import bounded

_UNIT = 16  # rows are a multiple of so many bytes
_ID_BYTES = 256
_CARRIER = "fp8_e4m3"  # a type of one byte, whose rows pass as they are


def install(exact=False, timeout=None):
    """Makes `import pplx_kernels` give this module, in this process. weft.Error if another one is loaded already. exact, timeout:
    see AllToAll.exact, AllToAll.timeout."""
    seconds(timeout)
    AllToAll.exact, AllToAll.timeout = AllToAll.exact or exact, timeout or AllToAll.timeout
    this = sys.modules[__name__]
    for name in ("pplx_kernels", "pplx_kernels.nvshmem", "pplx_kernels.all_to_all"):
        if sys.modules.setdefault(name, this) is not this:
            raise errors.Error(f"weft.moe.pplx.install: {name} is loaded already; call install before it is imported")


_SIZES = ("max_num_tokens", "num_experts", "experts_per_token", "rank", "world_size", "dp_size", "hidden_dim", "hidden_dim_bytes",
          "hidden_dim_scale_bytes")


def _signature(**more):
    """Of pplx_kernels' functions: what all have, then `more` with their defaults."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(name, kind) for name in _SIZES] +
                             [inspect.Parameter(name, kind, default=value) for name, value in more.items()])


_INTRANODE, _INTERNODE = _signature(group_name="default", max_sm_count=0), _signature(max_sm_count=0, group_name="default")


def _bound(signature, name, arguments, named):
    try:
        found = signature.bind(*arguments, **named)
    except TypeError as error:
        raise TypeError(f"pplx_kernels.{name}: {error}; its arguments are {', '.join(signature.parameters)}") from None
    found.apply_defaults()
    if isinstance(found.arguments["max_sm_count"], str):
        raise errors.InvalidArgument(f"pplx_kernels.{name}: max_sm_count is {found.arguments['max_sm_count']!r}; give a number of "
                                     "multiprocessors, and a group as group_name=")
    return types.SimpleNamespace(**found.arguments)


class AllToAll:
    """Dispatch and combine of one group of ranks, which are all PEs of the job. AllToAll(max_num_tokens, num_experts, experts_per_token,
    rank, world_size, dp_size, hidden_dim, hidden_dim_bytes, hidden_dim_scale_bytes, group_name="default", max_sm_count=0):

    max_num_tokens: of one group of dp_size ranks in one dispatch. dp_size: so many neighbouring ranks hold the same tokens;
    each sends its share, and all get all sums. hidden_dim_bytes, hidden_dim_scale_bytes: of one row, each up to a multiple of
    16; 0 scale bytes: rows have no scales. group_name: of a group of torch.distributed, over which the job begins if it has
    not begun (nvshmem_init). max_sm_count: multiprocessors of a GPU that its kernels use; 0: all. On the CPU it means nothing.
    """

    exact = False
    """Whether combine sends the row of each expert, and rounds a token's sum once. Else the experts' rank adds up first, so that one row
    for each token and rank is sent. Between nodes on GPUs it is never done."""

    timeout = None
    """Seconds that a dispatch or combine waits for a rank; None: as weft.moe.Exchange."""

    def __init__(self, *arguments, **named):
        given = _bound(_INTRANODE, "AllToAll", arguments, named)
        if not job.initialized():
            job.init(_group(given.group_name))
        rank, world_size, dp_size = given.rank, given.world_size, given.dp_size
        here = (operations.world.pe, operations.world.pe_count)
        if (rank, world_size) != here:
            raise errors.InvalidArgument(f"pplx_kernels.AllToAll: rank {rank} of {world_size} was given, and this is PE {here[0]} "
                                         f"of {here[1]}; the exchange is one of all PEs of the job")
        if dp_size < 1 or world_size % dp_size:
            raise errors.InvalidArgument(f"pplx_kernels.AllToAll: dp_size is {dp_size}, and the {world_size} ranks are not a "
                                         "multiple of it")
        self.max_num_tokens, self.dp_size, self.hidden_dim = given.max_num_tokens, dp_size, given.hidden_dim
        self.groups = world_size // dp_size
        self._bytes, self._scale_bytes = given.hidden_dim_bytes, given.hidden_dim_scale_bytes
        self._row_bytes = _padded(self._bytes) + _padded(self._scale_bytes)
        self._share = -(-self.max_num_tokens // dp_size)
        self._in_group = rank % dp_size
        self._sizes = {"max_tokens": self._share, "experts": given.num_experts, "topk": given.experts_per_token,
                       "layout": "expert_padded", "timeout": self.timeout, "blocks": given.max_sm_count}
        self._team = _team_of(rank, world_size, dp_size)
        self._exchanges, self._shared = {}, {}
        self._plan = self._sums = None

    @classmethod
    def intranode(cls, *arguments, **named):
        """AllToAll(...)."""
        return cls(**vars(_bound(_INTRANODE, "AllToAll.intranode", arguments, named)))

    @classmethod
    def internode(cls, *arguments, **named):
        """AllToAll(...); by position max_sm_count stands tenth, as in pplx_kernels."""
        return cls(**vars(_bound(_INTERNODE, "AllToAll.internode", arguments, named)))

    def destroy(self):
        """Gives the symmetric memory back. Collective."""
        for exchange in self._exchanges.values():
            exchange.close()
        for pair in self._shared.values():
            for array in pair:
                arrays.free(array)
        self._exchanges.clear()
        self._shared.clear()

    def dispatch(self, out_expert_num_tokens, out_expert_x, out_expert_x_scale, dp_x, dp_x_scale=None, indices=None,
                 bound_m=None, do_send=True, do_recv=True):
        """Fills out_expert_num_tokens [local experts], out_expert_x [local experts, >= groups * max_num_tokens, hidden] and
        out_expert_x_scale [local experts, the same, columns] with the rows of dp_x [tokens, hidden] whose indices [tokens,
        experts_per_token] name an expert of this rank. dp_x_scale: [tokens, columns], or [1, columns] for all.
        bound_m: a tensor with one number (or a number): tokens from there on go nowhere.
        do_recv=False: only sends; do_send=False: only receives what was sent, with the same arguments.
        """
        exchange = self._exchange(dp_x.device, _CARRIER, self._row_bytes)
        if do_send:
            try:
                self._check_tokens(dp_x, dp_x_scale, indices)
                self._check_rows(exchange, out_expert_x, out_expert_x_scale, dp_x)
            except errors.Error as error:
                exchange.refuse("dispatch", error)
                raise
            mine = self._mine(len(indices))
            rows = self._packed(dp_x[mine], None if dp_x_scale is None else dp_x_scale.expand(len(indices), -1)[mine])
            place = self._place_of(exchange, out_expert_x) if do_recv else {}
            got = exchange.dispatch(rows, _bounded(indices, bound_m)[mine], phase="both" if do_recv else "send", **place)
        if do_recv:
            if not do_send:
                got = exchange.dispatch(phase="recv", **self._place_of(exchange, out_expert_x))
            out_expert_num_tokens.copy_(got.counts)
            self._unpack(got, out_expert_x, out_expert_x_scale)
            self._plan = got.plan

    def combine(self, out_tokens, indices, weights, expert_y, bound_m=None, do_send=True, do_recv=True):
        """out_tokens[token] = the sum over its experts of weight * row, in float32, for the tokens of the last dispatch, whose indices
        are given again. A sum is rounded once, with AllToAll.exact; else each rank's part of it is rounded, too. weights: [tokens,
        experts_per_token]. expert_y: the shape of out_expert_x with hidden_dim columns, of bfloat16, float16 or float32.
        A token without experts gets zeros, and so does one that the dispatch's bound_m left out; this bound_m is not looked at."""
        exchange = self._exchange(expert_y.device, str(expert_y.dtype).removeprefix("torch."), self.hidden_dim)
        tokens = len(indices)
        mine = self._mine(tokens)
        if do_send:
            try:
                self._check_sums(out_tokens, indices, weights, mine)
                rows = self._of_capacity(exchange, expert_y)
            except errors.Error as error:
                exchange.refuse("combine", error)
                raise
            plan = copy.copy(self._plan)
            plan._rows_shape = tuple(rows.shape)
            fits = self.dp_size == 1 and out_tokens.is_contiguous() and out_tokens.dtype == expert_y.dtype
            self._sums = out_tokens[:tokens] if fits else torch.empty(plan.tokens, self.hidden_dim, dtype=expert_y.dtype,
                                                                      device=expert_y.device)
            exchange.combine(rows, plan, weights[mine].contiguous(), out=self._sums, phase="both" if do_recv else "send",
                             precision=exchange._most_exact if self.exact else "reduced")
        if do_recv:
            sums = self._sums if do_send else exchange.combine(phase="recv")
            self._sums = None
            if sums.data_ptr() != out_tokens.data_ptr():
                out_tokens[:tokens] = sums if self.dp_size == 1 else self._of_all(sums, tokens)

    # ---- Arguments

    def _check_tokens(self, dp_x, dp_x_scale, indices):
        if indices is None:
            raise errors.InvalidArgument("pplx_kernels: indices is missing; give [tokens, experts_per_token]")
        tokens = len(indices)
        if tokens > self.max_num_tokens:
            raise errors.WrongShape(f"pplx_kernels: {tokens} tokens were given, and AllToAll was made for {self.max_num_tokens}; "
                                    "give fewer, or raise max_num_tokens")
        _require_shape(dp_x, (tokens, self.hidden_dim), "dp_x")
        _require_shape(indices, (tokens, self._sizes["topk"]), "indices")
        if self.hidden_dim * dp_x.element_size() > self._bytes:
            raise errors.WrongDtype(f"pplx_kernels: a row of dp_x has {self.hidden_dim * dp_x.element_size()} bytes, and "
                                    f"hidden_dim_bytes is {self._bytes}; convert dp_x, or make AllToAll for its type")
        if dp_x_scale is None:
            return
        if dp_x_scale.dim() != 2 or dp_x_scale.shape[0] not in (1, tokens):
            raise errors.WrongShape(f"pplx_kernels: dp_x_scale has the shape {tuple(dp_x_scale.shape)}, and [{tokens}, columns] is "
                                    "needed")
        if dp_x_scale.shape[1] * dp_x_scale.element_size() > _padded(self._scale_bytes):
            raise errors.WrongShape(f"pplx_kernels: a row of dp_x_scale has {dp_x_scale.shape[1] * dp_x_scale.element_size()} "
                                    f"bytes, and hidden_dim_scale_bytes is {self._scale_bytes}; make AllToAll for them")

    def _check_rows(self, exchange, out_expert_x, out_expert_x_scale, dp_x):
        least = (exchange.local_experts, self.groups * self.max_num_tokens)
        wanted = [("out_expert_x", out_expert_x)]
        wanted += [] if out_expert_x_scale is None else [("out_expert_x_scale", out_expert_x_scale)]
        for name, tensor in wanted:
            if tensor.dim() != 3 or tensor.shape[0] != least[0] or tensor.shape[1] < least[1]:
                raise errors.WrongShape(f"pplx_kernels: {name} has the shape {tuple(tensor.shape)}, and [{least[0]} local experts, "
                                        f">= {least[1]} rows, columns] is needed")
        if out_expert_x.shape[2] != self.hidden_dim or out_expert_x.dtype != dp_x.dtype:
            raise errors.WrongDtype(f"pplx_kernels: out_expert_x has {out_expert_x.shape[2]} columns of {out_expert_x.dtype}, and "
                                    f"dp_x {self.hidden_dim} of {dp_x.dtype}; give both alike")

    def _check_sums(self, out_tokens, indices, weights, mine):
        if self._plan is None or self._plan.tokens != mine.stop - mine.start:
            raise errors.InvalidArgument("pplx_kernels: combine needs the indices of the last dispatch, and there is none of "
                                         f"{len(indices)} tokens; dispatch them first")
        _require_shape(weights, tuple(indices.shape), "weights")
        if out_tokens.dim() != 2 or len(out_tokens) < len(indices) or out_tokens.shape[1] != self.hidden_dim:
            raise errors.WrongShape(f"pplx_kernels: out_tokens has the shape {tuple(out_tokens.shape)}, and "
                                    f"{(len(indices), self.hidden_dim)} is needed")

    # ---- Rows

    def _mine(self, tokens):
        """Of the tokens of the ranks that hold the same: those that this rank sends."""
        share = -(-tokens // self.dp_size)
        return slice(min(tokens, self._in_group * share), min(tokens, (self._in_group + 1) * share))

    def _packed(self, x, scales):
        """uint8 [tokens, row bytes]: the row, then its scales."""
        x = x.contiguous().view(torch.uint8)
        if scales is None and x.shape[1] == self._row_bytes:
            return x
        rows = torch.zeros(len(x), self._row_bytes, dtype=torch.uint8, device=x.device)
        rows[:, :x.shape[1]] = x
        if scales is not None:
            codes = scales.contiguous().view(torch.uint8)
            rows[:, _padded(self._bytes):_padded(self._bytes) + codes.shape[1]] = codes
        return rows

    def _place_of(self, exchange, out_x):
        """On a GPU, rows that need no copy."""
        rows = (exchange.local_experts, exchange.ranks * self._share)
        if out_x.is_cuda and out_x.is_contiguous() and tuple(out_x.shape[:2]) == rows and \
                out_x.shape[2] * out_x.element_size() == self._row_bytes:
            return {"out": out_x.view(torch.uint8).view(torch.float8_e4m3fn)}
        return {}

    def _unpack(self, got, out_x, out_scales):
        if got.x.data_ptr() == out_x.data_ptr():
            return
        rows = got.x.view(torch.uint8)
        parts = [(out_x, 0)] + ([] if out_scales is None else [(out_scales, _padded(self._bytes))])
        for out, begin in parts:
            columns = min(out.shape[2] * out.element_size(), (self._row_bytes if begin else _padded(self._bytes)) - begin)
            part = rows[:, :out.shape[1], begin:begin + columns].view(out.dtype)
            if out.is_cuda:  # how many rows came is known to the GPU alone
                out[:, :part.shape[1], :part.shape[2]] = part
                continue
            for expert, count in enumerate(got.counts.tolist()):
                out[expert, :count, :part.shape[2]] = part[expert, :count]

    def _of_capacity(self, exchange, expert_y):
        """With as many rows for each expert as the exchange has places."""
        rows = (exchange.local_experts, exchange.ranks * self._share, self.hidden_dim)
        if expert_y.dim() != 3 or expert_y.shape[0] != rows[0] or expert_y.shape[2] != rows[2] or \
                expert_y.shape[1] < self.groups * self.max_num_tokens:
            raise errors.WrongShape(f"pplx_kernels: expert_y has the shape {tuple(expert_y.shape)}, and [{rows[0]} local experts, "
                                    f">= {self.groups * self.max_num_tokens} rows, {rows[2]}] is needed")
        if tuple(expert_y.shape) == rows:
            return expert_y.contiguous()
        whole = torch.empty(rows, dtype=expert_y.dtype, device=expert_y.device)
        shared = min(rows[1], expert_y.shape[1])
        whole[:, :shared] = expert_y[:, :shared]
        return whole

    def _of_all(self, sums, tokens):
        """The sums of all ranks that hold the same tokens, [tokens, hidden]."""
        every, mine = self._arrays(sums)
        torch.from_dlpack(mine)[:len(sums)] = sums
        self._team.fcollect(every, mine, stream=torch.cuda.current_stream(sums.device) if sums.is_cuda else None)
        share = -(-tokens // self.dp_size)
        return torch.from_dlpack(every)[:, :share].reshape(-1, self.hidden_dim)[:tokens]

    def _arrays(self, sums):
        key = (sums.device.type, sums.dtype)
        if key not in self._shared:
            dtype = str(sums.dtype).removeprefix("torch.")
            self._shared[key] = [arrays.zeros(shape, dtype, device=sums.device.type)
                                 for shape in ((self.dp_size, self._share, self.hidden_dim), (self._share, self.hidden_dim))]
        return self._shared[key]

    def _exchange(self, device, payload, hidden):
        """Made when it is first needed, which is collective, as dispatch and combine are anyway."""
        key = (device.type, payload, hidden)
        if key not in self._exchanges:
            self._exchanges[key] = Exchange(hidden=hidden, payload=payload, device=device.type, **self._sizes)
        return self._exchanges[key]


# ---- pplx_kernels.nvshmem

def nvshmem_alloc_empty_unique_id():
    """A uint8 tensor in which a rank receives the id that another one made."""
    return torch.zeros(_ID_BYTES, dtype=torch.uint8)


def nvshmem_get_unique_id():
    """weft.unique_id as a uint8 tensor."""
    return torch.frombuffer(bytearray(job.unique_id()), dtype=torch.uint8)


def nvshmem_init(unique_id, rank, world_size):
    """weft.init with an id that all ranks hold. Collective. Returns 0."""
    job.init(pe=rank, pe_count=world_size, unique_id=bytes(unique_id.cpu().numpy()))
    return 0


def nvshmem_finalize():
    """weft.finalize."""
    job.finalize()


def nvshmem_my_pe():
    """weft.pe."""
    return job.pe()


def nvshmem_n_pes():
    """weft.pe_count."""
    return job.pe_count()


def nvshmem_barrier_all():
    """weft.barrier_all."""
    operations.barrier_all()


def _group(name):
    """The group of torch.distributed of that name, or all its ranks; None without torch.distributed."""
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_initialized():
        return None
    if name in (None, "default"):
        return distributed.group.WORLD
    return distributed.distributed_c10d._resolve_process_group(name)


def _team_of(rank, world_size, dp_size):
    """The ranks that hold this rank's tokens. Collective."""
    if dp_size == 1:
        return None
    teams = [operations.world.split(first, 1, dp_size) for first in range(0, world_size, dp_size)]
    return teams[rank // dp_size]


def _bounded(indices, bound):
    indices = indices.to(torch.int64)
    if bound is None:
        return indices
    return bounded(indices, bound.to(device=indices.device, dtype=torch.int64) if isinstance(bound, torch.Tensor) else bound)


def _padded(count):
    return -(-count // _UNIT) * _UNIT


def _require_shape(tensor, shape, name):
    if tuple(tensor.shape) != shape:
        raise errors.WrongShape(f"pplx_kernels: {name} has the shape {tuple(tensor.shape)}, and {shape} is needed")
