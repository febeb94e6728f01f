"""Exchange: dispatch and combine. The C++ module (weft/moe.h) does the work; this file has the arrays and their checks."""

import math
import sys
import weakref

import numpy

from .. import _cuda, arrays
from ..errors import Freed, InvalidArgument, NoCuda
from ..native import core
from . import checks, gradients
from .arguments import integer, parsed
from .elements import LAYOUTS, PRECISIONS, STEPS, TYPES, Given, Held, choice, converted, like, numpy_dtype
from .results import Plan, Result, number_of, routes_of

_PHASES = ("both", "send", "recv")


class Exchange:
    """Dispatch and combine between the PEs of a team. Collective over all PEs of the job, as weft.empty, with the same
    arguments on the PEs of one team; a PE that is in no team passes a team that it is not a member of.

    team: weft.Team, default weft.world. max_tokens: of one PE in one dispatch. experts: any number from the ranks to 4096;
    the first experts % ranks ranks own one more. topk: 1 to 32.
    payload: bfloat16, float16, float32, float64, fp8_e4m3, fp8_e5m2, nvfp4. scales: none, float32 or ue8m0 (fp8: for each 128
    values), nvfp4. With fp8 and nvfp4, dispatch accepts rows of that type with their scales, or wider types, which it quantises.
    hidden: values in a row, which is a multiple of 16 bytes. output: the type of combine; that of payload, or bfloat16.
    layout: see Result. timeout: seconds that each dispatch and combine waits for a rank. None: WEFT_MOE_TIMEOUT, by default 1800 for
    the first dispatch and the first combine, as ranks may load and compile meanwhile, and 100 from then on. on_timeout: "error" raises
    weft.Timeout, which names the PEs, and breaks the exchange; "mask" continues without them (Exchange.active_mask).

    Memory: weft.moe.exchange_bytes says how much of the symmetric heap it takes; weft.OutOfMemory if that has no room.

    Gradients do not flow through an exchange: a tensor that requires one is a warning, once; weft.moe.Dispatcher has them.

    row_per: between nodes a row is sent to each "rank" that needs it, or once to each "node", whose ranks then read it there,
    and one sum comes back. "auto": "node" if nodes have several ranks; on GPUs not with a mask.

    device: "cpu", or "cuda": then arrays are torch's tensors on this PE's GPU, and calls enqueue
    kernels on torch's current stream (weft.moe.gpu says what differs). blocks: of 512 threads, of a kernel there; 0: as many
    as the GPU has multiprocessors.

    scales_by_column: in expert_padded with float32 or ue8m0 scales, Result.scales are [local experts, ranks * max_tokens, words] of
    float32, or of int32 with four powers each, whose memory has the rows of a word side by side, as products with scaled blocks
    (DeepGEMM) read them.

    outputs_in_place: in rank layouts, Result.outputs is memory for the rows that combine gets. On a GPU the ranks of a node read them
    there, instead of getting copies, so combine is faster; give it this tensor on all ranks or on none, before the second dispatch
    that follows its own, and write to it again only behind a dispatch that follows that combine. On the CPU it saves nothing.

    combines_exactly: whether combine has the precisions "exact" and "lanes". On GPUs it does not between nodes.

    torch.compile(fullgraph=True): there dispatch and combine, with phase "both", are operators (weft.moe.operators). Result.x has
    room for all rows that could come, also on the CPU; Result.outputs is None. The exchange has to be made after torch was imported,
    and kept as long as the graph.

    Threads: one at a time. Every PE makes the same calls in the same order.
    """

    combines_exactly = True
    _on_gpu = None  # returns the class of exchanges on GPUs; the package sets it, as that class is one of this
    _graph = None  # weft.moe.operators.Graph, if torch is there
    _has_warned = False  # weft.moe.gradients

    @property
    def _most_exact(self):
        return "exact" if self.combines_exactly else "reduced"

    def __new__(cls, *arguments, device="cpu", **named):
        if cls is Exchange and str(device) != "cpu":
            try:
                cls = cls._on_gpu()
            except ImportError:
                pass  # __init__ reports it, also to the other PEs
        return super().__new__(cls)

    def __init__(self, team=None, *, max_tokens, hidden, experts, topk, payload="bfloat16", scales=None, output=None,
                 layout="expert_padded", alignment=1, timeout=None, on_timeout="error", device="cpu", blocks=0, row_per="auto",
                 outputs_in_place=False, scales_by_column=False):
        arguments = locals()
        core.require_ready("weft.moe.Exchange")
        note, error, gpu = "weft.moe.Exchange", None, None
        try:
            gpu = self._find_gpu(device)
            given = parsed(arguments, gpu is not None)
            if not isinstance(team, core.Team | None):
                raise InvalidArgument(f"weft.moe: team is a {type(team).__name__}; give a weft.Team")
        except Exception as raised:  # the other PEs hear of it
            note, error = f"!{raised}", raised
        arrays._agree("weft.moe.Exchange", note, error)
        if gpu is not None:
            self._device = _cuda.initialize(gpu, "weft.moe.Exchange", arrays._agree)
        self._core = core.MoeExchange(team, given.config)
        self.max_tokens, self.hidden, self.experts, self.topk = given.max_tokens, given.hidden, given.experts, given.topk
        self.payload, self.output, self.scales, self.layout = given.payload, given.output, given.scales, given.layout
        self._is_by_rank, self._is_in_place = LAYOUTS[self.layout].is_by_rank, LAYOUTS[self.layout].is_in_place
        self.outputs_in_place, self.scales_by_column = bool(outputs_in_place), bool(scales_by_column)
        self._team = team
        self.has_part = team is None or team.is_member
        self._sending = None
        self._held = [None, None]
        self._buffers = [None, None]
        self._dispatches = 0
        if self.has_part:
            self._look_at_shape()
            self._use_torch()

    def _use_torch(self):
        """Lets graphs of torch.compile find this exchange, if torch was imported and has what they need."""
        if self._graph is None and hasattr(getattr(sys.modules.get("torch"), "library", None), "register_fake"):
            from .operators import Graph
            self._graph = Graph(self)

    @staticmethod
    def _find_gpu(device):
        """None: this class works on the CPU."""
        if str(device) != "cpu":
            raise NoCuda(f"weft.moe: device is {device!r}, and torch, whose tensors it would take, is missing; give 'cpu', or "
                         "install torch")
        return None

    @property
    def _is_compiled(self):
        """Whether this call is one of a graph that is being compiled."""
        return self._graph is not None and self._graph.is_compiling()

    def _take_sizes(self):
        """Returns what else the engine says of its shape."""
        shape = self._core.shape()
        self.rank, self.ranks = shape["rank"], shape["ranks"]
        self.first_expert, self.local_experts = shape["first_expert"], shape["local_experts"]
        self._scale_bytes, self._rows_max = shape["scale_bytes"], shape["rows_max"]
        self._payload_bytes = shape["payload_bytes"]
        parts = self.ranks if self._is_by_rank else self.local_experts
        # None: of as many rows as come.
        self._rows = (parts, self._rows_max // parts) if LAYOUTS[self.layout].is_padded else None
        return shape

    def _look_at_shape(self):
        shape = self._take_sizes()
        # weft.finalize keeps the contents of what numpy still shows, as of any symmetric array.
        self._array = core.wrap(shape["memory"], [shape["memory_bytes"]], "uint8", -1)
        self._memory = numpy.asarray(self._array)

    # ---- Dispatch

    def dispatch(self, x=None, topk_ids=None, topk_weights=None, scales=None, *, plan=None, bound=None, phase="both"):
        """Sends each row of x to the ranks that own its experts, and returns a Result with the rows received here.

        x: [tokens, hidden] of the payload's type, 0 to max_tokens tokens; bfloat16 as uint16 in numpy, fp8 and nvfp4 as
        uint8 ([tokens, hidden / 2] for nvfp4), or types of ml_dtypes and torch. topk_ids: [tokens, topk], integers, -1: no
        expert. topk_weights: [tokens, topk] floats, or None: then pass them to combine. scales: [tokens, blocks] for rows that
        are already quantised (nvfp4: bytes, with the row's float at the end, as weft/moe.h says).
        plan: of an earlier dispatch, in place of topk_ids (and of topk_weights, unless given).
        bound: tokens from this number on go nowhere, for padded batches, and get zeros from combine. An integer, or an array with
        one; on a GPU the stream reads it there, so graphs follow it. Not with a plan, which has its own.
        phase: "send" returns None when the arrays may be reused; "recv" then waits and returns the Result.
        """
        if self._is_compiled:
            return self._graph.dispatch((x, topk_ids, topk_weights, scales), plan, bound, phase)
        self._require("dispatch", phase)
        if phase == "recv":
            return self._receive_rows(*self._sending[1:])
        gradients.warn(self, "dispatch", {"x": x, "topk_weights": topk_weights})
        slot = self._dispatches % 2
        self._dispatches += 1
        try:
            given = self._check_tokens((x, topk_ids, topk_weights, scales), plan, bound, slot)
        except Exception as error:  # also one of numpy or torch: the other PEs wait for this call
            self._core.refuse(STEPS["dispatch"], str(error))
            raise
        x, type_name, ids, weights, scales = given
        self._core.dispatch_send(len(ids), TYPES[type_name],
                                 (x.address, _address(scales), ids.ctypes.data, _address(weights)))
        given_dtype = x.array.dtype if type_name == self.payload and not x.is_tensor else None
        self._sending = ("dispatch", slot, Plan(core.MoePlan(), ids, weights), given_dtype, x.is_tensor)
        return self._receive_rows(*self._sending[1:]) if phase == "both" else None

    def _check_tokens(self, tokens, plan, bound, slot):
        x, topk_ids, topk_weights, scales = tokens
        held = self._held[slot]
        if held is not None and held() is not None:
            raise InvalidArgument(
                f"weft.moe: dispatch {self._dispatches} needs the memory of dispatch {self._dispatches - 2}, and views of "
                "that Result are alive; two results may live: delete the older one, or copy what is kept of it")
        topk_ids, topk_weights = routes_of(x, topk_ids, topk_weights, plan, bound)
        x = Given(x, "x")
        type_name = x.type_for(self.payload)
        columns = self.hidden // 2 if type_name == "nvfp4" else self.hidden
        checks.require_tokens(x.shape, columns, type_name)
        tokens = x.shape[0]
        ids = converted(topk_ids, "int64", "topk_ids")
        weights = converted(topk_weights, "float32", "topk_weights")
        for array, name in ((ids, "topk_ids"), (weights, "topk_weights")):
            if array is not None:
                checks.require_routes(array.shape, name, tokens, self.topk)
        if bound is not None:
            ids = numpy.where(numpy.arange(tokens)[:, None] < number_of(bound), ids, -1)
        return x, type_name, ids, weights, self._check_scales(scales, tokens)

    def _check_scales(self, scales, tokens):
        if scales is None:
            return None
        if not self._scale_bytes:
            raise InvalidArgument(f"weft.moe: scales were given, and the exchange has none; make it with scales= "
                                  f"(payload {self.payload})")
        scales = Given(scales, "scales")
        columns = self._scale_bytes // (4 if self.scales == "float32" else 1)
        scales.require_shape((tokens, columns), "[tokens, blocks]")
        wanted = ("float32",) if self.scales == "float32" else ("uint8", "float8_e8m0fnu")
        if scales.dtype not in wanted:
            raise InvalidArgument(f"weft.moe: scales is of {scales.dtype}; give {wanted[0]}")
        return scales

    def _receive_rows(self, slot, plan, given_dtype, is_tensor):
        self._sending = None
        buffers = self._buffers_of(slot)
        parts = self.ranks if self._is_by_rank else self.local_experts
        counts, offsets = numpy.zeros(parts, "int32"), numpy.zeros(parts + 1, "int64")
        found = self._core.dispatch_recv(plan._handle, (*(_address(buffer) for buffer in buffers), counts.ctypes.data,
                                                        offsets.ctypes.data))
        if self._is_in_place:
            held = [Held(self._memory.ctypes.data, self._memory.size, self._memory)] * 4
        else:
            held = [None if buffer is None else Held(buffer.ctypes.data, buffer.nbytes, buffer) for buffer in buffers]
            held = [held[0], *(one and _follow(one, held[0]) for one in held[1:])]
        self._held[slot] = weakref.ref(held[0])
        rows = (int(offsets[-1]),) if self._rows is None else self._rows
        plan._rows_shape = (*rows, self.hidden)
        return self._show(held, rows, found, (counts, offsets, plan), (given_dtype, is_tensor))

    def _show(self, held, rows, found, rest, kind):
        """The Result over the addresses and strides that the engine found."""
        is_tensor = kind[1]
        dtype = numpy_dtype(self.payload)
        x = like(held[0].view(found[0], (*rows, self._payload_bytes // dtype.itemsize), dtype, found[4]), self.payload, *kind)
        scales = row_scales = None
        if self._scale_bytes:
            blocks = self._scale_bytes // 4 if self.scales == "float32" else self._scale_bytes
            if self.scales == "nvfp4":
                blocks = self.hidden // 16
                row_scales = held[1].view(found[1] + (blocks + 3) // 4 * 4, (*rows, 1), "float32", found[5])[..., 0]
            if self.scales_by_column:
                words = (rows[0], self._scale_bytes // 4, rows[1])
                scales = held[1].view(found[1], words, "float32" if self.scales == "float32" else "int32").swapaxes(1, 2)
            else:
                scales = held[1].view(found[1], (*rows, blocks), "float32" if self.scales == "float32" else "uint8", found[5])
        if self._is_by_rank:
            ids = held[2].view(found[2], (*rows, self.topk), "int32", found[6])
            weights = held[3].view(found[3], (*rows, self.topk), "float32", found[7])
        else:
            ids, weights = None, held[3].view(found[3], rows, "float32")
        outputs = None
        if self.outputs_in_place:
            raw = numpy.empty((*rows, self.hidden), numpy_dtype(self.output))
            outputs = like(raw, self.output, kind[0] if self.output == self.payload else None, is_tensor)
        counts, offsets, plan = rest
        shown = [_tensor(array) if is_tensor else array for array in (scales, row_scales, weights, ids, counts, offsets)]
        return Result(x, *shown, plan, outputs)

    def _buffers_of(self, slot):
        """Memory for the rows of layouts that copy: x, scales, ids, weights; touched only where rows come."""
        if self._is_in_place:
            return [None] * 4
        if self._buffers[slot] is None:
            rows, lanes = self._rows_max, self.topk if self._is_by_rank else 1
            self._buffers[slot] = [
                numpy.empty(rows * self._payload_bytes, "uint8"), numpy.empty(rows * self._scale_bytes, "uint8"),
                numpy.empty(rows * lanes, "int32") if self._is_by_rank else None, numpy.empty(rows * lanes, "float32")]
        return self._buffers[slot]

    # ---- Combine

    def combine(self, expert_out=None, plan=None, topk_weights=None, *, out=None, precision="reduced", weighted=True,
                phase="both"):
        """Sends the rows of the experts back, and returns [tokens, hidden] of the output's type: for each token the sum over
        its experts of weight * row.

        expert_out: the shape of Result.x with `hidden` columns, of the output's type. plan: Result.plan. topk_weights:
        [tokens, topk]; without them those of dispatch. weighted=False: each row has weight 1; always so in rank layouts,
        whose rows the caller has reduced.
        precision: "reduced" sums on the experts' ranks first, in float32, and sends one row for each token and rank;
        "exact" sends every row, sums in the order of lanes and rounds once; "lanes" returns the rows unsummed,
        [tokens, topk, hidden]; "fp8" is "reduced" with half the bytes: the rows sent are rounded to fp8 with a scale for each 128
        values (moe/docs/MOE.md has the error bound). out: where to write.
        phase: as in dispatch; "recv" takes `out` alone.
        """
        if self._is_compiled:
            return self._graph.combine((expert_out, plan, topk_weights), out, precision, weighted, phase)
        self._require("combine", phase)
        if self._graph is not None:
            plan = self._graph.outside(plan)
        gradients.warn(self, "combine", {"expert_out": expert_out, "topk_weights": topk_weights})
        if phase == "recv":
            return self._receive_sums(*self._sending[1:4], out if out is not None else self._sending[4])
        try:
            rows, weights, numbers, is_tensor = self._check_outputs(expert_out, plan, topk_weights, precision, weighted)
            if out is not None:
                self._check_out(out, plan, precision)
        except Exception as error:  # as in dispatch
            self._core.refuse(STEPS["combine"], str(error))
            raise
        self._core.combine_send(plan._handle, (rows.address, _address(weights)), 0, numbers)
        given_dtype = None if is_tensor else rows.array.dtype
        self._sending = ("combine", plan, precision, (given_dtype, is_tensor), out)
        return self._receive_sums(plan, precision, (given_dtype, is_tensor), out) if phase == "both" else None

    def _check_outputs(self, expert_out, plan, topk_weights, precision, weighted):
        checks.require_plan(plan)
        checks.require_outputs(expert_out)
        precision = PRECISIONS[choice(precision, PRECISIONS, "precision")]
        rows = Given(expert_out, "expert_out")
        rows.require_shape(plan._rows_shape, "the shape of Result.x")
        if rows.type_for(self.output) != self.output:
            raise InvalidArgument(checks.wrong_output(rows.dtype, self.output))
        weights = converted(topk_weights, "float32", "topk_weights")
        if weights is not None:
            checks.require_routes(weights.shape, "topk_weights", plan.tokens, self.topk)
        is_plain = self._is_by_rank and weights is None or precision == PRECISIONS["lanes"]
        weighting = checks.weighting_of(weights, weighted, is_plain)
        return rows, weights, (precision, weighting), rows.is_tensor

    def _out_shape(self, plan, precision):
        return checks.sums_shape(plan, self.topk, self.hidden, precision == "lanes")

    def _check_out(self, out, plan, precision):
        given = Given(out, "out")
        given.require_shape(self._out_shape(plan, precision), "[tokens, hidden]")
        if given.type_for(self.output) != self.output:
            raise InvalidArgument(f"weft.moe: out is of {given.dtype}; give {self.output}")
        if not given.is_tensor and not out.flags.writeable:
            raise InvalidArgument("weft.moe: out is read-only; give an array that can be written")
        return given

    def _receive_sums(self, plan, precision, kind, out):
        address = None if out is None else self._check_out(out, plan, precision).address  # refused, it can be called again
        self._sending = None
        if out is None:
            raw = numpy.empty(self._out_shape(plan, precision), numpy_dtype(self.output))
            self._core.combine_recv(raw.ctypes.data)
            return like(raw, self.output, *kind)
        self._core.combine_recv(address)
        return out

    # ---- The rest

    def refuse(self, step, reason):
        """Call it instead of a "dispatch" or "combine" that this PE cannot make: the others raise weft.Mismatch with the reason, and
        the exchange stays usable. For callers that check arguments themselves."""
        self._require(choice(step, STEPS, "step"), "both")
        self._dispatches += step == "dispatch"
        self._core.refuse(STEPS[step], str(reason))

    def sources(self, plan):
        """(ranks, tokens): for each row of the Result of `plan` the rank that it came from, and the token's index there; -1 for
        unused rows. int32, in the shape of Result.x without its last axis."""
        checks.require_plan(plan)
        ranks, tokens = numpy.empty(self._rows_max, "int32"), numpy.empty(self._rows_max, "int32")
        self._core.sources(plan._handle, ranks.ctypes.data, tokens.ctypes.data)
        rows = plan._rows_shape[:-1]
        return tuple(array[:math.prod(rows)].reshape(rows) for array in (ranks, tokens))

    def set_blocks(self, blocks):
        """On GPUs: as Exchange(blocks=), from the next call of this PE on. On the CPU it means nothing."""

    def leave_out(self, rank):
        """Masks `rank` at once, as after a timeout with on_timeout="mask". Between calls; all other ranks must do the same
        at the same point. On a GPU this waits for the GPU."""
        self._core.leave_out(integer(rank, "rank"))

    def rejoin(self):
        """Brings back ranks that were late or left out. Collective over all ranks, including those. Calls that a rank had begun are
        dropped, and an exchange that a timeout broke works again. A PE whose process died cannot come back. On a GPU this waits
        for the GPU; graphs of rank_major must be captured anew."""
        self._core.rejoin()
        self._sending = None

    def check(self):
        """On GPUs (weft.moe.gpu): raises what the kernels found. On the CPU every call raises its own errors."""

    @property
    def active_mask(self):
        """bool [ranks]: False for a masked rank, which did not take part within a timeout (on_timeout="mask"), as seen by this PE."""
        return numpy.array(self._core.active(self.ranks), bool)

    def close(self):
        """Frees the symmetric memory. Collective over all PEs of the job. Afterwards plans may only be read."""
        note, error = "", None
        if self.has_part and any(held is not None and held() is not None for held in self._held):
            error = InvalidArgument("weft.moe: views of a Result are alive; delete them before Exchange.close")
            note = f"!{error}"
        arrays._agree("weft.moe.Exchange.close", note, error)
        if self.has_part:
            self._memory = None
            core.mark_freed(self._array, "weft.moe.Exchange.close")
        taken, self._core = self._core, None
        taken.close()

    def _require(self, step, phase):
        if self._core is None:
            raise Freed("weft.moe: the exchange is closed; make another one")
        if not self.has_part:
            raise InvalidArgument("weft.moe: this PE is in no team of the exchange")
        if phase not in _PHASES:
            error = InvalidArgument(f"weft.moe: phase is {phase!r}; give one of {', '.join(_PHASES)}")
            if not self._sending:  # else the call that was sent can still be received
                self.refuse(step, error)
            raise error
        sent = self._sending and self._sending[0]
        if phase == "recv" and sent != step:
            raise InvalidArgument(f"weft.moe: {step}(phase='recv') without {step}(phase='send') before it")
        if phase != "recv" and sent:
            raise InvalidArgument(f"weft.moe: a {sent} was sent and not received; call {sent}(phase='recv') first")


def _address(array):
    return 0 if array is None else array.ctypes.data if isinstance(array, numpy.ndarray) else array.address


def _follow(one, first):
    """Makes `one` keep the Held of x alive, which stands for the whole Result."""
    one._first = first
    return one


def _tensor(array):
    if array is None:
        return None
    import torch
    return torch.from_numpy(array)
