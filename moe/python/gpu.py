"""The exchange on GPUs: tensors of torch in this PE's GPU memory, kernels on torch's current stream.

What differs from the CPU's:

- dispatch and combine return at once. What only a kernel sees (a rank that does not come, an id that is no expert's) is raised
  by Exchange.check(), after the stream was synchronized, or by the next call.
- Result.x has room for all rows that may come; Result.counts and Result.offsets are on the GPU too.
- A Result is memory of its own, but in rank_major: there the rows of a dispatch lie in place until the next dispatch but one,
  which nothing checks. So do Result.outputs.
- All calls can be captured in a CUDA graph; in rank_major a graph holds a multiple of three dispatches.
"""

import functools
import math

import torch

from .. import _cuda
from ..errors import Error, InvalidArgument, NoCuda, NotContiguous, WrongDevice, WrongDtype, WrongShape
from ..native import core
from . import checks, gradients
from .arguments import integer
from .elements import OF_DISPATCH, PRECISIONS, STEPS, TYPES, choice
from .exchange import Exchange
from .operators import _DTYPES, bounded
from .results import Plan, Result, number_of, routes_of

_PHASE_NUMBERS = {"both": 0, "send": 1, "recv": 2}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


# torch's quick way to the current stream's handle, where it has it.
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)


def stream_of(device):
    """The handle of torch's current stream on that GPU, a number."""
    return _raw_stream(device) if _raw_stream is not None else torch.cuda.current_stream(device).cuda_stream


_ALIGNMENT = 256
_IN_PLACE = ("x", "scales", "ids", "weights")  # in the order of the addresses that a dispatch returns
_OUTPUTS = 8  # beside them
_IN_BLOCK = ("scales", "ids", "weights", "counts", "offsets")  # in the order of the addresses that a dispatch gets, behind x
_PARTS = frozenset(("x", "scales", "row_scales", "ids", "weights", "counts", "offsets", "outputs"))


class GpuResult(Result):
    """As weft.moe.Result. Its tensors are made when they are first looked at: making one takes the CPU as long as a launch."""

    def __init__(self, exchange, memory, places, plan):
        self._source, self.plan = (exchange, memory, places), plan

    def __getattr__(self, name):
        if name not in _PARTS:
            raise AttributeError(f"weft.moe.Result has no attribute {name!r}")
        exchange, memory, places = self._source
        value = self.__dict__[name] = exchange._part(name, memory, places)
        return value


class GpuPlan(Plan):
    """As weft.moe.Plan. Its memory is on the GPU, mostly at the beginning of a block that has the parts of the Result behind it."""

    def __init__(self, memory, topk_ids, topk_weights):
        super().__init__(memory, topk_ids, topk_weights)
        self.memory = memory


class GpuExchange(Exchange):
    """weft.moe.Exchange(device="cuda")."""

    @staticmethod
    def _find_gpu(device):
        if not torch.cuda.is_available():
            raise NoCuda(f"weft.moe: device is {device!r}, and torch sees no GPU; give 'cpu'")
        return _cuda.device_of(device, "weft.moe.Exchange")

    @functools.cached_property
    def combines_exactly(self):
        team = core.world if self._team is None else self._team
        return all(core.node_of(team.translate(rank, core.world)) == core.node() for rank in range(self.ranks))

    def _look_at_shape(self):
        shape = self._take_sizes()
        self._plan_bytes = shape["plan_bytes"]
        self.device = torch.device("cuda", self._device)
        self._memory = None
        if self._is_in_place or self.outputs_in_place:
            array = core.wrap(shape["memory"], [shape["memory_bytes"]], "uint8", self._device)
            self._array, self._memory = array, torch.from_dlpack(array)
        dtype, columns = _DTYPES[self.payload], self.hidden // 2 if self.payload == "nvfp4" else self.hidden
        self._rows, self._row_of_x = self._rows or (self._rows_max,), (dtype, columns)
        self._lay_out_block()

    def _lay_out_block(self):
        """The plan and all of a Result but x are one piece of memory: {name: (type, shape, strides, first element)}."""
        parts = self.ranks if self._is_by_rank else self.local_experts
        shapes = {"counts": (torch.int32, (parts,)), "offsets": (torch.int64, (parts + 1,))}
        if not self._is_in_place:
            lanes = (self.topk,) if self._is_by_rank else ()
            shapes["weights"] = torch.float32, (*self._rows, *lanes)
            if self._is_by_rank:
                shapes["ids"] = torch.int32, (*self._rows, *lanes)
            if self._scale_bytes:
                shapes["scales"] = torch.uint8, (*self._rows, self._scale_bytes)
        self._places, end = {}, self._plan_bytes
        for name, (dtype, shape) in shapes.items():
            begin = (end + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
            end = begin + math.prod(shape) * dtype.itemsize
            strides = [math.prod(shape[axis + 1:]) for axis in range(len(shape))]
            self._places[name] = dtype, shape, strides, begin // dtype.itemsize
        # In the order of the addresses that a dispatch gets; None for what the layout does not
        # have.
        self._begins = [self._places[name][3] * self._places[name][0].itemsize if name in self._places else None
                        for name in _IN_BLOCK]
        self._block_bytes = -(-end // _ALIGNMENT) * _ALIGNMENT

    def _stream(self):
        return stream_of(self._device)

    # ---- Dispatch

    def dispatch(self, x=None, topk_ids=None, topk_weights=None, scales=None, *, plan=None, bound=None, phase="both", out=None):
        """As weft.moe.Exchange.dispatch, with tensors on this PE's GPU: topk_ids of int64 (others are converted), topk_weights
        of float32. out: where the rows go and what Result.x is, all of its shape; for layouts that copy rows. Phase "send"
        does without it."""
        if self._is_compiled:
            return self._graph.dispatch((x, topk_ids, topk_weights, scales), plan, bound, phase, out)
        self._require("dispatch", phase)
        if phase == "recv":
            self._check_rows_out(out)
            given, plan = self._sending[1:]
            self._sending = None
            return self._receive(given, plan, phase, out)
        gradients.warn(self, "dispatch", {"x": x, "topk_weights": topk_weights})
        given, ids, weights = self._checked((x, topk_ids, topk_weights, scales), plan, bound, out)
        plan = self._plan_over(self._empty((self._block_bytes,), torch.uint8), ids, weights)
        if phase == "both":
            return self._receive(given, plan, phase, out)
        self._enqueue_dispatch("send", given, plan, (0,) * 6)
        self._sending = ("dispatch", given, plan)
        return None

    def dispatch_apart(self, *tokens):
        """As dispatch, for operators, whose results may not share memory: the plan and each part of the Result have their own."""
        self._require("dispatch", "both")
        given, ids, weights = self._checked(tokens, None, None, None)
        plan = self._plan_over(self._empty((self._plan_bytes,), torch.uint8), ids, weights)
        parts = {name: self._empty(shape, dtype) for name, (dtype, shape, *_) in self._places.items()}
        rows = self._rows_to_fill(None)
        found = (_address(rows), *(_address(parts.get(name)) for name in _IN_BLOCK))
        return self._shown(rows, parts, self._enqueue_dispatch("both", given, plan, found), plan)

    def _checked(self, tokens, plan, bound, out):
        try:
            self._check_rows_out(out)
            return self._check_tensors(tokens, plan, bound)
        except Error:
            self._core.refuse_on_stream(STEPS["dispatch"], self._stream())
            raise

    def _plan_over(self, memory, topk_ids, topk_weights):
        plan = GpuPlan(memory, topk_ids, topk_weights)
        plan._rows_shape = (*self._rows, self.hidden)
        return plan

    def _check_tensors(self, tokens, plan, bound):
        x, topk_ids, topk_weights, scales = tokens
        topk_ids, topk_weights = routes_of(x, topk_ids, topk_weights, plan, bound)
        self._require_tensor(x, "x")
        type_name = self.payload if x.dtype in (torch.uint8, torch.int8) else _NAMES.get(x.dtype)
        if type_name is None:
            raise WrongDtype(f"weft.moe: x is of {x.dtype}; give {self.payload}")
        columns = self.hidden // 2 if type_name == "nvfp4" else self.hidden
        checks.require_tokens(x.shape, columns, type_name)
        tokens = x.shape[0]
        ids = self._converted(topk_ids, torch.int64, "topk_ids", tokens)
        weights = None if topk_weights is None else self._converted(topk_weights, torch.float32, "topk_weights", tokens)
        if scales is not None:
            self._require_tensor(scales, "scales")
            if scales.numel() * scales.element_size() != tokens * self._scale_bytes:
                raise WrongShape(f"weft.moe: scales has {scales.numel() * scales.element_size()} bytes, and {self._scale_bytes} "
                                 f"for each of {tokens} tokens are needed")
        return (x, type_name, scales), ids if bound is None else self._bounded(ids, bound), weights

    def _bounded(self, ids, bound):
        if not isinstance(bound, torch.Tensor):
            bound = number_of(bound)
        elif bound.numel() != 1 or bound.dtype not in (torch.int32, torch.int64) or bound.get_device() != self._device:
            raise InvalidArgument(f"weft.moe: bound is {tuple(bound.shape)} of {bound.dtype} on {bound.device}; give an integer, or a "
                                  f"tensor with one, of torch.int32 or int64, on {self.device}")
        return bounded(ids, bound)

    def _check_rows_out(self, out):
        if out is None:
            return
        self._require_tensor(out, "out")
        dtype, columns = self._row_of_x
        if self._is_in_place or out.shape != (*self._rows, columns) or out.dtype != dtype:
            raise WrongShape(f"weft.moe: out is {tuple(out.shape)} of {out.dtype}, and {(*self._rows, columns)} of {dtype} is "
                             "needed, in a layout other than rank_major")

    def _require_tensor(self, tensor, name):
        if not isinstance(tensor, torch.Tensor):
            raise WrongDtype(f"weft.moe: {name} is a {type(tensor).__name__}; give a tensor on {self.device}")
        if tensor.get_device() != self._device:
            raise WrongDevice(f"weft.moe: {name} is on {tensor.device}, and the exchange on {self.device}: "
                              f"{name}.to('{self.device}')")
        if not tensor.is_contiguous():
            raise NotContiguous(f"weft.moe: {name} is a view with gaps; copy it first (Tensor.contiguous)")

    def _converted(self, tensor, dtype, name, tokens):
        self._require_tensor(tensor, name)
        checks.require_routes(tensor.shape, name, tokens, self.topk)
        if tensor.dtype == dtype:
            return tensor
        if dtype == torch.int64 and (tensor.dtype.is_floating_point or tensor.dtype == torch.bool):
            raise WrongDtype(f"weft.moe: {name} is of {tensor.dtype}; give torch.int64")
        return tensor.to(dtype)

    def _enqueue_dispatch(self, phase, given, plan, found):
        x, type_name, scales = given
        addresses = (x.data_ptr(), _address(scales), plan.topk_ids.data_ptr(), _address(plan.topk_weights))
        return self._core.dispatch_on_stream((_PHASE_NUMBERS[phase], x.shape[0], TYPES[type_name]), addresses, found,
                                             plan.memory.data_ptr(), self._stream())

    def _dispatch_for_later(self, x, topk_ids):
        """As dispatch with phase "send", in a layout that copies rows. Returns the Result that _receive_later fills; its tensors are
        there already."""
        self.dispatch(x, topk_ids, phase="send")
        plan = self._sending[2]
        rows, found = self._room(plan, None)
        result = self._shown(rows, plan.memory, None, plan)
        result.found = found
        return result

    def _receive_later(self, result):
        self._require("dispatch", "recv")
        given, plan = self._sending[1:]
        self._sending = None
        self._enqueue_dispatch("recv", given, plan, result.found)

    def _receive(self, given, plan, phase, out):
        rows, found = self._room(plan, out)
        return self._shown(rows, plan.memory, self._enqueue_dispatch(phase, given, plan, found), plan)

    def _rows_to_fill(self, out):
        """None: they stay in place."""
        if self._is_in_place or out is not None:
            return out
        dtype, columns = self._row_of_x
        return self._empty((*self._rows, columns), dtype)

    def _room(self, plan, out):
        """What a dispatch fills: rows; and the addresses in them and in the block."""
        rows, base = self._rows_to_fill(out), plan.memory.data_ptr()
        return rows, (_address(rows), *[0 if begin is None else base + begin for begin in self._begins])

    def _shown(self, rows, memory, places, plan):
        result = GpuResult(self, memory, places, plan)
        if rows is not None:
            result.x = rows
        return result

    def _part(self, name, block, places):
        """One of the tensors of a Result, over the block of a dispatch, or what stands for it, or over the exchange's memory."""
        if name == "outputs":
            return self._outputs(places[_OUTPUTS])
        if name not in ("scales", "row_scales"):
            return self._raw_part(name, block, places)
        raw = self._raw_part("scales", block, places) if self._scale_bytes else None
        return self._scales_of(raw) if name == "scales" else self._row_scales_of(raw)

    def _outputs(self, address):
        if not address:
            return None
        first, dtype = address - self._memory.data_ptr(), _DTYPES[self.output]
        shape = (*self._rows, self.hidden)
        return self._memory[first:first + math.prod(shape) * dtype.itemsize].view(dtype).view(shape)

    def _raw_part(self, name, block, places):
        if self._is_in_place and name in _IN_PLACE:
            place = _IN_PLACE.index(name)
            dtype, columns = (self._row_of_x, (torch.uint8, self._scale_bytes), (torch.int32, self.topk),
                              (torch.float32, self.topk))[place]
            return self._in_place(places[place], places[place + 4], dtype, columns)
        if name not in self._places:
            return None
        if isinstance(block, dict):  # of dispatch_apart
            return block[name]
        dtype, shape, strides, first = self._places[name]
        return block.view(dtype).as_strided(shape, strides, first)

    def _scales_of(self, raw):
        if not self._scale_bytes:
            return None
        if self.scales_by_column:
            words = raw.view(torch.float32 if self.scales == "float32" else torch.int32)
            return words.view(self.local_experts, -1, self._rows[1]).transpose(1, 2)
        if self.scales == "nvfp4":
            return raw[..., :self.hidden // 16]
        return raw.view(torch.float32) if self.scales == "float32" else raw

    def _row_scales_of(self, raw):
        if self.scales != "nvfp4":
            return None
        return raw[..., (self.hidden // 16 + 3) // 4 * 4:].view(torch.float32)[..., 0]

    def _empty(self, shape, dtype):
        return torch.empty(shape, dtype=dtype, device=self.device)

    def _in_place(self, address, stride, dtype, columns):
        """[ranks, max_tokens, columns] over the exchange's memory, whose rows are `stride` bytes apart."""
        first = address - self._memory.data_ptr()
        rows = self._memory[first:first + (self.ranks * self.max_tokens - 1) * stride + columns * dtype.itemsize].view(dtype)
        step = stride // dtype.itemsize
        return rows.as_strided((*self._rows, columns), (self.max_tokens * step, step, 1))

    # ---- Combine

    def combine(self, expert_out=None, plan=None, topk_weights=None, *, out=None, precision="reduced", weighted=True,
                phase="both"):
        """As weft.moe.Exchange.combine, with tensors on this PE's GPU. Returns `out`, or a new tensor, which the stream fills."""
        if self._is_compiled:
            return self._graph.combine((expert_out, plan, topk_weights), out, precision, weighted, phase)
        self._require("combine", phase)
        if self._graph is not None:
            plan = self._graph.outside(plan)
        if phase == "recv":
            given, plan, sent_out = self._sending[1:]
            self._sending = None
            return self._enqueue_combine("recv", given, plan, sent_out if out is None else out)
        gradients.warn(self, "combine", {"expert_out": expert_out, "topk_weights": topk_weights})
        try:
            given = self._check_experts(expert_out, plan, topk_weights, precision, weighted)
            if out is not None:
                self._check_sums(out, plan, given)
        except Error:
            self._core.refuse_on_stream(STEPS["combine"], self._stream())
            raise
        if phase == "both":
            return self._enqueue_combine("both", given, plan, out)
        self._enqueue_combine("send", given, plan, out)
        self._sending = ("combine", given, plan, out)
        return None

    def _check_experts(self, expert_out, plan, topk_weights, precision, weighted):
        checks.require_plan(plan, GpuPlan)
        if precision not in PRECISIONS:
            raise InvalidArgument(f"weft.moe: precision is {precision!r}; give one of {', '.join(PRECISIONS)}")
        checks.require_outputs(expert_out)
        self._require_tensor(expert_out, "expert_out")
        if expert_out.shape != plan._rows_shape:
            raise WrongShape(f"weft.moe: expert_out has the shape {tuple(expert_out.shape)}, and the shape of Result.x = "
                             f"{plan._rows_shape} is needed")
        if expert_out.dtype != _DTYPES[self.output]:
            raise WrongDtype(checks.wrong_output(expert_out.dtype, self.output))
        weights = None
        if topk_weights is not None:
            weights = self._converted(topk_weights, torch.float32, "topk_weights", plan.tokens)
        weighting = checks.weighting_of(weights, weighted, self._is_by_rank and weights is None or precision == "lanes")
        if weighting == OF_DISPATCH and plan.topk_weights is None:
            raise InvalidArgument("weft.moe: topk_weights are missing: neither dispatch nor combine got them; give them to one "
                                  "of both, or weighted=False")
        return expert_out, weights, PRECISIONS[precision], weighting

    def _sums_shape(self, plan, given):
        return checks.sums_shape(plan, self.topk, self.hidden, given[2] == PRECISIONS["lanes"])

    def _check_sums(self, out, plan, given):
        self._require_tensor(out, "out")
        wanted = self._sums_shape(plan, given)
        if out.shape != wanted or out.dtype != _DTYPES[self.output]:
            raise WrongShape(f"weft.moe: out is {tuple(out.shape)} of {out.dtype}, and {wanted} of {_DTYPES[self.output]} is "
                             "needed")

    def _enqueue_combine(self, phase, given, plan, out):
        expert_out, weights, precision, weighting = given
        if out is None and phase != "send":
            out = self._empty(self._sums_shape(plan, given), _DTYPES[self.output])
        # Without tokens nothing is written, but there is an address for it.
        address = 0 if out is None else out.data_ptr() or plan.memory.data_ptr()
        self._core.combine_on_stream((expert_out.data_ptr(), _address(weights), address, plan.memory.data_ptr(),
                                      self._stream()), (_PHASE_NUMBERS[phase], precision, weighting))
        return out

    # ---- The rest

    def sources(self, plan):
        """As weft.moe.Exchange.sources, tensors on the GPU, which the stream fills."""
        checks.require_plan(plan, GpuPlan)
        ranks, tokens = (self._empty((self._rows_max,), torch.int32) for _ in range(2))
        self._core.sources_on_stream(plan.memory.data_ptr(), ranks.data_ptr(), tokens.data_ptr(), self._stream())
        rows = plan._rows_shape[:-1]
        return tuple(tensor[:math.prod(rows)].view(rows) for tensor in (ranks, tokens))

    def show_row_routes(self, result, ids, weights, counts):
        """In rank_compact, from the Result of a dispatch, as the stream fills them: ids of int64, -1 also in rows that did not come;
        float32 weights, 0 where an id is -1; and int64 counts, of rows for each local expert, and of all. ids: [rows, topk], also more
        rows than Result.x has; weights and counts may be None."""
        base, (_, ids_at, weights_at, _, offsets_at) = result.plan.memory.data_ptr(), self._begins
        self._core.row_routes_on_stream((base + ids_at, base + weights_at, base + offsets_at), len(ids),
                                        (ids.data_ptr(), _address(weights), _address(counts)), self._stream())

    def refuse(self, step, reason):
        """As weft.moe.Exchange.refuse; the others hear who refused, not why."""
        self._require(choice(step, STEPS, "step"), "both")
        self._core.refuse_on_stream(STEPS[step], self._stream())

    def set_blocks(self, blocks):
        """As weft.moe.Exchange.set_blocks."""
        self._core.set_blocks(integer(blocks, "blocks"))

    def leave_out(self, rank):
        torch.cuda.synchronize(self.device)
        super().leave_out(rank)

    def rejoin(self):
        torch.cuda.synchronize(self.device)
        super().rejoin()

    def check(self):
        """Synchronizes the current stream, and raises what its kernels found: weft.Timeout, weft.Mismatch,
        weft.InvalidArgument."""
        torch.cuda.current_stream(self.device).synchronize()
        self._core.check()

    def close(self):
        """As weft.moe.Exchange.close. Synchronizes the GPU. In rank_major no view of a Result may be used any more, nor any Result.outputs."""
        torch.cuda.synchronize(self.device)
        if self._memory is not None:
            self._memory = None
            core.mark_freed(self._array, "weft.moe.Exchange.close")
        taken, self._core = self._core, None
        taken.close()


def _address(tensor):
    return 0 if tensor is None else tensor.data_ptr()
