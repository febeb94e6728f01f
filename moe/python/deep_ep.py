"""The names of DeepEP's first interface (deep_ep.Buffer) over weft.moe, for programs that import deep_ep. Tensors of the CPU
or of this PE's GPU.

    import weft.moe.deep_ep
    weft.moe.deep_ep.install()          # from now on `import deep_ep` gives this module; nothing is shadowed without it

What differs: num_experts need not be a multiple of the ranks. On the CPU a step is complete when the call (or its hook)
returns; on a GPU its kernels run on the current stream, where with async_finish an event is recorded. Handles of dispatch are opaque.
Sizes of buffers and numbers of queue pairs are accepted, and mean nothing; logfmt is the plain combine; the statistics of waiting
times are left as they are. A rank that was masked comes back by a call that all ranks make.
"""

import copy
import dataclasses
import dis
import functools
import sys

import numpy
import torch

from .. import arrays, errors, job, operations
from . import row_routes
from .arguments import seconds
from .deep_ep_rows import RowsOnCpu, RowsOnGpu, ScalesOf, scales_of
from .exchange import Exchange


def install(exact=False, max_tokens=None, timeout=None):
    """Makes `import deep_ep` give this module, in this process. weft.Error if another deep_ep is loaded already. exact, max_tokens,
    timeout: see Buffer.exact, Buffer.max_tokens, Buffer.timeout."""
    seconds(timeout)
    Buffer.exact, Buffer.max_tokens = Buffer.exact or exact, max_tokens or Buffer.max_tokens
    Buffer.timeout = timeout or Buffer.timeout
    ours = sys.modules[__name__]
    for name in ("deep_ep", "deep_ep.utils"):  # programs import the events from the latter
        if sys.modules.setdefault(name, ours) is not ours:
            raise errors.Error(f"weft.moe.deep_ep.install: {name} is loaded already; call install before it is imported")


_INSTEAD = "; this module has the interface of deep_ep.Buffer: use Buffer, or weft.moe.Exchange (moe/docs/MOE.md)"
_MISSING = {"ElasticBuffer": "deep_ep.ElasticBuffer, of DeepEP's second interface, is not there" + _INSTEAD,
            "EPHandle": "deep_ep.EPHandle, a handle of DeepEP's second interface, is not there" + _INSTEAD}


def __getattr__(name):
    """What is not there, so that hasattr is False, and `from deep_ep import` says why."""
    if name in _MISSING:
        code = sys._getframe(1)
        is_import = dis.opname[code.f_code.co_code[code.f_lasti]] == "IMPORT_FROM"  # which forgets what an AttributeError says
        raise (ImportError if is_import else AttributeError)(_MISSING[name])
    raise AttributeError(f"module 'deep_ep' (weft.moe.deep_ep) has no attribute '{name}'")


class EventHandle:
    """This point of torch's current stream. Without a GPU it has always passed."""

    def __init__(self):
        self._event = torch.cuda.Event() if torch.cuda.is_initialized() else None
        if self._event is not None:
            self._event.record()

    def current_stream_wait(self):
        """The current stream waits for this event. Returns at once."""
        if self._event is not None:
            torch.cuda.current_stream().wait_event(self._event)


class EventOverlap:
    """An event, and the objects to keep alive until it: a context manager, as DeepEP's."""

    def __init__(self, event=None, extra_tensors=None):
        self.event, self.extra_tensors = event, extra_tensors

    def current_stream_wait(self):
        """As EventHandle.current_stream_wait."""
        if self.event is not None:
            self.event.current_stream_wait()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.current_stream_wait()


@dataclasses.dataclass
class Config:
    """Accepted and ignored."""
    num_sms: int = 20
    num_max_nvl_chunked_send_tokens: int = 6
    num_max_nvl_chunked_recv_tokens: int = 256
    num_max_rdma_chunked_send_tokens: int = 6
    num_max_rdma_chunked_recv_tokens: int = 256

    def get_nvl_buffer_size_hint(self, hidden_bytes, num_ranks):
        """0: the exchange allocates by itself."""
        return 0

    get_rdma_buffer_size_hint = get_nvl_buffer_size_hint


topk_idx_t = torch.int64
"""The type of topk_idx."""


class LowLatencyHandle(tuple):
    """(src_info, layout_range, num_max_dispatch_tokens_per_rank, hidden, num_experts) of a low_latency_dispatch.

    src_info: int32 [local experts, ranks * num_max_dispatch_tokens_per_rank], the number of each row's token at its source,
    -1 where no row came. layout_range: int64 [local experts, ranks], begin << 32 | count of the rows of each source. Both are
    found out when they are first looked at, after the rows were received.
    """

    def __new__(cls, exchange, plan, *sizes):
        self = super().__new__(cls, (None, None, *sizes))
        self.exchange, self.plan, self.has_rows, self.combine_buffer, self._found = exchange, plan, False, None, None
        return self

    def __iter__(self):
        if self._found is None:
            if not self.has_rows:
                raise errors.InvalidArgument("deep_ep: src_info and layout_range are known when the rows are here; call the hook "
                                             "of low_latency_dispatch first")
            ranks, tokens = (torch.as_tensor(part) for part in self.exchange.sources(self.plan))
            every = torch.arange(self.exchange.ranks, device=ranks.device)
            counts = (ranks[..., None] == every).sum(1)
            self._found = tokens, (counts.cumsum(1) - counts) << 32 | counts
        return iter((*self._found, *(tuple.__getitem__(self, at) for at in range(2, len(self)))))

    def __getitem__(self, at):
        return tuple(iter(self))[at]


class Buffer:
    """The exchanges of one group. group: of torch.distributed, or comm: of mpi4py; or neither, for the job that this process is in. Sizes,
    and how DeepEP reaches its peers, are accepted and mean nothing; so does explicitly_destroy: call destroy. Exchanges are
    made when sizes are first seen, which is collective, as dispatch and combine are anyway. enable_shrink: ranks that do not come
    within `timeout` seconds (None: Buffer.timeout) are masked, else they are an error."""

    num_sms = 20
    exact = False
    """Whether low_latency_combine sends the row of each expert, and rounds a token's sum once, as DeepEP does. Else the experts' rank
    adds up first, so that one row for each token and rank is sent, and each rank's part of a sum is rounded, too. Between nodes on GPUs
    it is never done."""

    max_tokens = None
    """The most tokens of a rank in a dispatch of normal mode, the same on all ranks. None: in each, the ranks' CPUs agree on the most of
    that one, so that none is ahead of the others."""

    timeout = None
    """Seconds that a call waits for a rank; None: as weft.moe.Exchange, WEFT_MOE_TIMEOUT or 1800 for the first call and 100 later."""

    def __init__(self, group=None, num_nvl_bytes=0, num_rdma_bytes=0, low_latency_mode=False, num_qps_per_rank=24,
                 allow_nvlink_for_low_latency_mode=True, allow_mnnvl=False, use_fabric=False, explicitly_destroy=False,
                 enable_shrink=False, comm=None, *, timeout=None, **of_forks):
        _refuse_forks("Buffer", of_forks)
        group = comm if group is None else group
        if not job.initialized():
            job.init(group)
        self.group, self.low_latency_mode = group, low_latency_mode
        self.num_nvl_bytes, self.num_rdma_bytes = num_nvl_bytes, num_rdma_bytes
        self.rank, self.group_size = operations.world.pe, operations.world.pe_count
        if group is not None and _size(group) != self.group_size:
            raise errors.InvalidArgument(f"deep_ep.Buffer: the group has {_size(group)} members, and the job {self.group_size} "
                                         "PEs; give a group of all of them")
        self._exchanges, self._open = {}, set()  # open: of them, those that got rows by a hook, whose combine has not been called
        self._limits = {"timeout": self.timeout if timeout is None else timeout, "on_timeout": "mask" if enable_shrink else "error"}
        most = arrays.zeros(2, "int64")
        self._most, self._shown_most = (most[0:1], most[1:2]), numpy.asarray(most)

    def destroy(self):
        """Collective."""
        for exchange in self._exchanges.values():
            exchange.close()
        self._exchanges.clear()
        self._open.clear()

    @staticmethod
    def is_sm90_compiled():
        """True: fp8 is there on every machine."""
        return True

    @staticmethod
    def get_comm_stream():
        """The stream on which calls run: torch's current one."""
        if not torch.cuda.is_available():
            raise errors.NoCuda("deep_ep.Buffer.get_comm_stream: torch sees no GPU; on the CPU calls run on no stream")
        return torch.cuda.current_stream()

    @staticmethod
    def get_local_buffer_tensor(*arguments, **named):
        """Refused: an exchange has no buffer of the caller's."""
        raise errors.InvalidArgument("deep_ep.Buffer.get_local_buffer_tensor: there is no such buffer, as exchanges allocate by "
                                     "themselves; use the tensors that dispatch and combine return")

    @staticmethod
    def set_num_sms(new_num_sms):
        """So many multiprocessors of a GPU do dispatch and combine, from the next call on. Low-latency calls use all."""
        Buffer.num_sms = new_num_sms

    @staticmethod
    def capture():
        """This point of the current stream."""
        return EventOverlap(EventHandle())

    @staticmethod
    def get_dispatch_config(num_ranks):
        """A Config."""
        return Config(Buffer.num_sms)

    get_combine_config = get_dispatch_config

    @staticmethod
    def get_low_latency_rdma_size_hint(num_max_dispatch_tokens_per_rank, hidden, num_ranks, num_experts):
        """0: the exchange allocates by itself."""
        return 0

    # ---- Normal mode: rows of the ranks one after the other, not expanded by experts

    def get_dispatch_layout(self, topk_idx, num_experts, previous_event=None, async_finish=False,
                            allocate_on_comm_stream=False):
        """(tokens for each rank, None, tokens for each expert, is_token_in_rank [tokens, ranks], event)."""
        _wait_for(previous_event)
        of_rank, of_expert, in_rank = row_routes.destinations(topk_idx, num_experts, self.group_size)
        return of_rank, None, of_expert, in_rank, _overlap(async_finish)

    def dispatch(self, x, handle=None, num_tokens_per_rank=None, num_tokens_per_rdma_rank=None, is_token_in_rank=None,
                 num_tokens_per_expert=None, topk_idx=None, topk_weights=None, expert_alignment=1, num_worst_tokens=0,
                 config=None, previous_event=None, async_finish=False, allocate_on_comm_stream=False):
        """(recv_x, recv_topk_idx, recv_topk_weights, tokens of each local expert as a list, handle, event).

        x: [tokens, hidden] bfloat16, or (fp8, scales [tokens, hidden / 128] of float32, or four powers of two in each int32).
        With a handle: the same routes again, and None for what is known. num_tokens_per_expert gives the number of experts. num_worst_tokens: as many rows are returned, those
        that no token came for with the ids -1, and no counts; then nothing waits for the GPU.
        """
        _wait_for(previous_event)
        rows, scales = x if isinstance(x, tuple) else (x, None)
        if handle is None:
            if topk_idx is None or num_tokens_per_expert is None:
                raise errors.InvalidArgument("deep_ep.Buffer.dispatch: topk_idx and num_tokens_per_expert are needed; take the "
                                             "latter from get_dispatch_layout")
            experts = len(num_tokens_per_expert)
            most = self.max_tokens or self._most_of_all(len(rows))
        else:
            topk_idx, topk_weights, experts, most = handle[0].topk_ids, handle[0].topk_weights, handle[4], handle[2]
        are_packed = scales is not None and scales.dtype == torch.int32
        exchange = self._exchange(max_tokens=most, hidden=rows.shape[1], experts=experts, topk=topk_idx.shape[1],
                                  payload="bfloat16" if scales is None else "fp8_e4m3",
                                  scales=None if scales is None else "ue8m0" if are_packed else "float32",
                                  layout="rank_compact", device=rows.device.type)
        given = _bytes_of(scales, rows.shape[1]) if are_packed else None if scales is None else scales.contiguous()
        exchange.set_blocks(Buffer.num_sms)
        got = exchange.dispatch(rows, topk_idx, topk_weights, given)
        if handle is None:
            ids, weights, counts, count = row_routes.of_rows(exchange, got, num_worst_tokens, topk_weights is not None)
            handle = got.plan, exchange, most, rows.shape[1], experts, count
            counts = [-(-rows // expert_alignment) * expert_alignment for rows in counts or ()]
        else:
            ids = weights = counts = None
            count = num_worst_tokens or handle[5]
        received = _first(got.x, count)
        if scales is not None:
            received = received, scales_of(_first(got.scales, count), are_packed, are_packed)
        return received, ids, weights, counts, handle if ids is not None else None, _overlap(async_finish)

    def combine(self, x, handle, topk_weights=None, bias=None, config=None, previous_event=None, async_finish=False,
                allocate_on_comm_stream=False):
        """(sums [tokens, hidden], sums of topk_weights [tokens, topk] or None, event). x: the rows that dispatch gave, which
        the caller has reduced over its experts. bias: a tensor, or two, that are added."""
        _wait_for(previous_event)
        plan, exchange, most, hidden, experts, _ = handle
        topk = plan.topk_ids.shape[1]
        exchange.set_blocks(Buffer.num_sms)
        sums = exchange.combine(x.contiguous(), _of_columns(plan, len(x), hidden))
        for term in bias if isinstance(bias, tuple) else (bias,):
            sums = sums if term is None else (sums.float() + term.float()).to(sums.dtype)
        if topk_weights is None:
            return sums, None, _overlap(async_finish)
        columns = -(-topk // 4) * 4
        of_weights = self._exchange(max_tokens=most, hidden=columns, experts=experts, topk=topk, payload="float32", scales=None,
                                    layout="rank_compact", device=x.device.type)
        wide = torch.nn.functional.pad(topk_weights.float(), (0, columns - topk)).contiguous()
        weights = of_weights.combine(wide, _of_columns(plan, len(wide), columns))[:, :topk]
        return sums, weights, _overlap(async_finish)

    # ---- Low latency: rows by expert, with room for all tokens of all ranks

    def low_latency_dispatch(self, x, topk_idx, num_max_dispatch_tokens_per_rank, num_experts,
                             cumulative_local_expert_recv_stats=None, dispatch_wait_recv_cost_stats=None, use_fp8=True,
                             round_scale=False, use_ue8m0=False, async_finish=False, return_recv_hook=False, **of_forks):
        """(recv_x or (fp8, scales), recv_count int32 [local experts], handle, event, hook). recv_x: [local experts,
        ranks * num_max_dispatch_tokens_per_rank, hidden]. With return_recv_hook the tensors are filled by hook()."""
        _refuse_forks("Buffer.low_latency_dispatch", of_forks)
        hidden, most = x.shape[1], num_max_dispatch_tokens_per_rank
        scales = ScalesOf(hidden, round_scale or use_ue8m0, use_ue8m0) if use_fp8 else None
        exchange = self._idle_exchange(return_recv_hook, max_tokens=most, hidden=hidden, experts=num_experts, topk=topk_idx.shape[1],
                                       payload="fp8_e4m3" if use_fp8 else "bfloat16", scales=scales and scales.name,
                                       layout="expert_padded", device=x.device.type,
                                       scales_by_column=use_fp8 and scales.are_laid_out)
        arrival = (RowsOnGpu if x.is_cuda else RowsOnCpu)(exchange, (x, topk_idx), scales, return_recv_hook)
        handle = LowLatencyHandle(exchange, arrival.plan, most, hidden, num_experts)

        def hook():
            arrival.receive()
            if cumulative_local_expert_recv_stats is not None:
                cumulative_local_expert_recv_stats.add_(arrival.counts)
            handle.has_rows = True

        if not return_recv_hook:
            hook()
        return ((arrival.x, arrival.scales) if use_fp8 else arrival.x, arrival.counts, handle, _overlap(async_finish),
                hook if return_recv_hook else None)

    def low_latency_combine(self, x, topk_idx, topk_weights, handle, use_logfmt=False, zero_copy=False, async_finish=False,
                            return_recv_hook=False, out=None, combine_wait_recv_cost_stats=None, **of_forks):
        """(combined_x [tokens, hidden], event, hook). x: bfloat16, in the shape that low_latency_dispatch gave. zero_copy: not x
        is combined, but what get_next_low_latency_combine_buffer gave for this handle."""
        _refuse_forks("Buffer.low_latency_combine", of_forks)
        plan, exchange = handle.plan, handle.exchange
        if exchange._sending:
            raise errors.InvalidArgument("deep_ep.Buffer.low_latency_combine: a call that was sent after the dispatch of this handle "
                                         "takes its place, and its hook was not called; call that hook first")
        self._open.discard(exchange)
        if zero_copy:
            if handle.combine_buffer is None:
                raise errors.InvalidArgument("deep_ep.Buffer.low_latency_combine: zero_copy combines the tensor of "
                                             "get_next_low_latency_combine_buffer(handle), which was not asked for; fill it first")
            x = handle.combine_buffer
        combined = torch.empty(plan.tokens, exchange.hidden, dtype=torch.bfloat16, device=x.device) if out is None else out
        exchange.combine(x.contiguous(), plan, topk_weights, out=combined, phase="send" if return_recv_hook else "both",
                         precision=exchange._most_exact if self.exact else "reduced")

        def hook():
            exchange.combine(phase="recv")

        return combined, _overlap(async_finish), hook if return_recv_hook else None

    def get_next_low_latency_combine_buffer(self, handle):
        """The tensor that low_latency_combine with zero_copy takes the rows from: [local experts, ranks *
        num_max_dispatch_tokens_per_rank, hidden] of bfloat16."""
        if handle.combine_buffer is None:
            device = getattr(handle.exchange, "device", "cpu")
            handle.combine_buffer = torch.empty(handle.plan._rows_shape, dtype=torch.bfloat16, device=device)
        return handle.combine_buffer

    def clean_low_latency_buffer(self, num_max_dispatch_tokens_per_rank, hidden, num_experts):
        """Nothing is to be cleaned."""

    def low_latency_query_mask_buffer(self, mask_status):
        """mask_status[rank] = 1 for a rank that did not take part in time, or that was masked."""
        mask_status.zero_()
        for exchange in self._exchanges.values():
            mask_status |= torch.from_numpy(~exchange.active_mask).to(mask_status)

    def low_latency_update_mask_buffer(self, rank_to_mask, mask=False):
        """mask=True: from now on without that rank; between calls, and on all others at the same place. mask=False: collective over
        all ranks, also over those that were masked: all take part again. Needs enable_shrink."""
        if not mask:
            self.low_latency_clean_mask_buffer()
            return
        for exchange in self._exchanges.values():
            exchange.leave_out(rank_to_mask)

    def low_latency_clean_mask_buffer(self):
        """Collective over all ranks: all take part again. What a rank had begun is dropped."""
        for exchange in self._exchanges.values():
            exchange.rejoin()

    # ---- Exchanges

    def _idle_exchange(self, is_later, **sizes):
        """With return_recv_hook two batches may be under way, each in an exchange of its own, as DeepEP has two buffers. The second is
        made when it is needed."""
        first = self._exchange(0, **sizes)
        chosen = first
        if first._sending or (is_later and first in self._open):
            second = self._exchange(1, **sizes)
            chosen = first if second._sending else second
        if chosen._sending:
            raise errors.InvalidArgument("deep_ep.Buffer.low_latency_dispatch: two calls were sent whose hooks were not called, and no "
                                         "more fit; call the hook of one of them first")
        if is_later:
            self._open.add(chosen)
        return chosen

    def _exchange(self, number=0, **sizes):
        key = (number, *sizes.items())
        if key not in self._exchanges:
            self._exchanges[key] = Exchange(**sizes, **self._limits)
        return self._exchanges[key]

    def _most_of_all(self, tokens):
        """The same on all ranks: enough for the rank with the most, rounded up so that few exchanges are made."""
        self._shown_most[1] = tokens
        operations.world.reduce(*self._most, "max")
        return max(16, 1 << (int(self._shown_most[0]) - 1).bit_length())


def _overlap(is_async):
    """Events cost the CPU more than a launch, so there is one only where it is asked for."""
    return EventOverlap(EventHandle() if is_async else None)


def _size(group):
    return group.size() if callable(getattr(group, "size", None)) else group.Get_size()


def _refuse_forks(name, arguments):
    """Arguments that only forks of DeepEP have are accepted while they ask for nothing."""
    for argument, value in arguments.items():
        if value is not None and value is not False:
            raise errors.InvalidArgument(f"deep_ep.{name}: {argument} is not there, which only forks of DeepEP have; leave "
                                         "it out (in SGLang: nvfp4 dispatch, single-batch overlap)")


def _bytes_of(scales, hidden):
    """uint8 [tokens, hidden / 128] of scales of which four are in each int32."""
    return scales.contiguous().view(torch.uint8)[:, :-(-hidden // 128)].contiguous()


def _wait_for(event):
    if event is not None:
        event.current_stream_wait()


def _first(rows, count):
    """The first rows, as many as `count`; rows beyond those there are undefined. A copy where the exchange uses them again."""
    if rows.is_cuda and count == len(rows):
        return rows
    if count <= len(rows):
        return rows[:count] if rows.is_cuda else rows[:count].clone()
    return torch.cat([rows, rows.new_empty(count - len(rows), *rows.shape[1:])])


def _of_columns(plan, rows, columns):
    """The plan for rows of another width, on an exchange with the same routes."""
    other = copy.copy(plan)
    other._rows_shape = (rows, columns)
    return other
