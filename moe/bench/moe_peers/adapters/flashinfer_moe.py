"""FlashInfer's one-sided all-to-all, which is TensorRT-LLM's: package flashinfer, at least its comm.trtllm_moe_alltoall. Rows
stand once for each rank; the caller sums over its experts. It does not quantise, so rows come in fp8 with their scales in both
modes, which spares it that work in latency mode. A dispatch includes the marking of ids that are other ranks' experts'."""

import torch
from flashinfer import version
from flashinfer.comm.comm_backend import TorchDistBackend
from flashinfer.comm.mapping import Mapping
from flashinfer.comm.mnnvl import MnnvlConfig
from flashinfer.comm.trtllm_moe_alltoall import MoeAlltoAll, moe_a2a_get_workspace_size_per_rank

import workload

from .base import Base

IDS = 2
"""Of the payloads."""


class Adapter(Base):
    name, version = "FlashInfer one-sided", version.__version__
    kernels = {"dispatch": ("moeA2APrepareDispatch", "moeA2ADispatch", "moeA2ASanitize"),
               "combine": ("moeA2APrepareCombine", "moeA2ACombine")}
    limits_sms = False

    def __init__(self, ranks):
        super().__init__(ranks)
        self._exchanges = {}
        self._mapping = Mapping(world_size=ranks.size, rank=ranks.rank, gpus_per_node=ranks.size, tp_size=ranks.size,
                                moe_ep_size=ranks.size, moe_tp_size=1)

    def prepare(self, case, given):
        super().prepare(case, given)
        self._payloads = [given.fp8.view(torch.uint8), given.scales, given.ids.to(torch.int32), given.weights]
        if case.max_tokens not in self._exchanges:
            self._exchanges[case.max_tokens] = self._exchange_for(case)
        self._exchange = self._exchanges[case.max_tokens]

    def _exchange_for(self, case):
        bytes_of_a_row = sum(payload.shape[1] * payload.element_size() for payload in self._payloads)
        size = moe_a2a_get_workspace_size_per_rank(self.ranks.size, case.max_tokens, bytes_of_a_row, 2 * case.hidden)
        return MoeAlltoAll(self._mapping, case.max_tokens, case.topk, case.experts, workspace_size_per_rank=size,
                           mnnvl_config=MnnvlConfig(comm_backend=TorchDistBackend()))

    def dispatch(self):
        return self._exchange.dispatch(self._payloads[IDS], self._payloads, self.case.tokens,
                                       invalid_token_expert_id=self.case.experts, expert_id_payload_index=IDS)

    def experts(self, received):
        rows, scales, ids, weights = received
        ids = ids - self.first_expert
        ids = torch.where((ids >= 0) & (ids < self.local_experts), ids, -1)
        answers = workload.experts_by_token(rows.view(torch.float8_e4m3fn), scales, ids, weights, self.first_expert)
        return torch.where((ids >= 0).any(dim=-1, keepdim=True), answers, torch.zeros_like(answers))

    def combine(self, received, answers):
        return self._exchange.combine(answers, self.case.tokens)


class InPlace(Adapter):
    """The experts write their rows into the workspace, where the other ranks read them."""

    def experts(self, received):
        rows = self._exchange.get_combine_payload_tensor_in_workspace(self.case.tokens, self.case.hidden, torch.bfloat16)
        return rows.copy_(super().experts(received).view(rows.shape))

    def combine(self, received, answers):
        return self._exchange.combine(answers, self.case.tokens, payload_in_workspace=True)
