"""NCCL EP: packages nccl-extensions and nccl4py. It compiles its kernels with nvcc at the first call and keeps them in
NCCL_EP_JIT_CACHE_DIR, so the first session is slow. Latency: LOW_LATENCY with rows by expert, or by rank. Throughput:
HIGH_THROUGHPUT, FLAT, with room for all rows that may come, so that a pair can be captured. A handle's update is a part of
dispatch, because new routes need it."""

import nccl.core
import torch
from nccl import ep

import workload

from .base import Base

ID_KIND = ep.ExpertIdKind.LOCAL


class Adapter(Base):
    name, version = "NCCL EP", str(ep.get_lib_version())
    kernels = {"dispatch": ("dispatch_kernel", "scan_flat_kernel"), "combine": ("combine_kernel",)}
    low_latency_layout = ep.Layout.EXPERT_MAJOR

    def __init__(self, ranks):
        super().__init__(ranks)
        mine = nccl.core.get_unique_id(empty=ranks.rank != 0)
        first = nccl.core.UniqueId.from_bytes(ranks.gather(bytes(mine.as_bytes))[0])
        self._communicator = nccl.core.Communicator.init(ranks.size, ranks.rank, first)
        self._groups, self._handles = {}, {}

    # ---- What a case needs

    def prepare(self, case, given):
        super().prepare(case, given)
        self._is_latency = case.mode == "latency"
        self._layout = self.low_latency_layout if self._is_latency else ep.Layout.FLAT
        self._ids = ep.Tensor(given.ids)
        self._allocate()
        if case not in self._handles:
            self._handles[case] = self._group().create_handle(self._layout, self._ids, layout_info=self._info_of_handle,
                                                              stream=_stream())
        self._handle = self._handles[case]

    def _group(self):
        case = self.case
        key = (case.mode, case.max_tokens, case.sms)
        if key not in self._groups:
            algorithm = ep.Algorithm.LOW_LATENCY if self._is_latency else ep.Algorithm.HIGH_THROUGHPUT
            self._groups[key] = ep.Group.create(self._communicator, ep.GroupConfig(
                algorithm=algorithm, num_experts=case.experts, max_dispatch_tokens_per_rank=case.max_tokens,
                max_recv_tokens_per_rank=0 if self._is_latency else self.ranks.size * case.max_tokens,
                max_token_bytes=2 * case.hidden, max_num_sms=case.sms, num_topk=case.topk))
        return self._groups[key]

    def _allocate(self):
        """The tensors that calls fill, and their descriptors."""
        case, given, ranks = self.case, self.given, self.ranks.size
        shape = {ep.Layout.EXPERT_MAJOR: (self.local_experts, ranks * case.max_tokens),
                 ep.Layout.RANK_MAJOR: (ranks, case.max_tokens), ep.Layout.FLAT: (ranks * case.max_tokens,)}[self._layout]
        empty = lambda *sizes, dtype: torch.empty(sizes, dtype=dtype, device=given.x.device)  # noqa: E731
        self._rows = empty(*shape, case.hidden, dtype=torch.float8_e4m3fn)
        self._scales = empty(*shape, case.hidden // workload.BLOCK, dtype=torch.float32)
        self._counts = empty(shape[0] if self._is_latency else 1, dtype=torch.int32)
        self._sums = torch.empty_like(given.x)
        self._found = None
        named = {}
        if self._layout != ep.Layout.EXPERT_MAJOR:
            of_ids = torch.int64 if self._layout == ep.Layout.FLAT else torch.int32
            self._found = empty(*shape, case.topk, dtype=of_ids), empty(*shape, case.topk, dtype=torch.float32)
            named = {"topk_idx": ep.Tensor(self._found[0]), "topk_weights": ep.Tensor(self._found[1])}
        self._outputs = ep.DispatchOutputs(tokens=ep.Tensor(self._rows), scales=ep.Tensor(self._scales), **named)
        self._info, self._info_of_handle = self._infos()
        self._inputs, self._recipe = self._inputs_and_recipe()
        weights = ep.Tensor(given.weights) if self._layout == ep.Layout.EXPERT_MAJOR else None
        self._combined = ep.CombineOutputs(tokens=ep.Tensor(self._sums), topk_weights=weights)

    def _infos(self):
        counts = ep.Tensor(self._counts)
        if self._layout == ep.Layout.EXPERT_MAJOR:
            return ep.LayoutInfo(expert_counters=counts), None
        if self._layout == ep.Layout.RANK_MAJOR:
            return ep.LayoutInfo(src_rank_counters=counts, recv_topk_idx_kind=ID_KIND), None
        return None, ep.LayoutInfo(recv_total_counter=counts, recv_topk_idx_kind=ID_KIND)

    def _inputs_and_recipe(self):
        given, recipes = self.given, ep.DispatchQuantizationRecipe
        weights = None if self._layout == ep.Layout.EXPERT_MAJOR else ep.Tensor(given.weights)
        if self._is_latency:
            inputs, recipe = ep.DispatchInputs(tokens=ep.Tensor(given.x), topk_weights=weights), recipes.DS_FP8E3M4
        else:
            inputs = ep.DispatchInputs(tokens=ep.Tensor(given.fp8), topk_weights=weights, scales=ep.Tensor(given.scales))
            recipe = recipes.FWD
        return inputs, ep.DispatchConfig(quantization_recipe=recipe)

    # ---- Calls

    def dispatch(self):
        stream = _stream()
        self._handle.update(self._ids, layout_info=self._info_of_handle, stream=stream)
        self._handle.dispatch(self._inputs, self._outputs, layout_info=self._info, config=self._recipe, stream=stream)
        return None

    def experts(self, received):
        if self._layout == ep.Layout.EXPERT_MAJOR:
            return workload.experts_by_expert(self._rows, self._scales, self._counts, self.first_expert)
        ids, weights = self._found
        answers = workload.experts_by_token(self._rows, self._scales, ids, weights, self.first_expert)
        return torch.where((ids >= 0).any(dim=-1, keepdim=True), answers, torch.zeros_like(answers))

    def combine(self, received, answers):
        self._handle.combine(ep.CombineInputs(tokens=ep.Tensor(answers)), self._combined, stream=_stream())
        return self._sums

    def close(self):
        torch.cuda.synchronize()


class RankMajor(Adapter):
    """Rows stand once for each rank; the caller sums over its experts."""

    low_latency_layout = ep.Layout.RANK_MAJOR
    modes = ("latency",)


def _stream():
    return torch.cuda.current_stream().cuda_stream
