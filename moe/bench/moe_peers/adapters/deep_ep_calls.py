"""The calls of DeepEP's first interface, deep_ep.Buffer, that the adapters of its implementations have in common. `_buffer` is the
case's, `_configs` those of dispatch and combine in throughput mode."""

import torch

import workload

from .base import Base


class DeepEpCalls(Base):
    def dispatch(self):
        given, case = self.given, self.case
        if case.mode == "latency":
            rows, counts, handle, _, _ = self._buffer.low_latency_dispatch(given.x, given.ids, case.max_tokens, case.experts)
            return rows, counts, handle
        per_rank, _, per_expert, is_in_rank, _ = self._buffer.get_dispatch_layout(given.ids, case.experts)
        rows, ids, weights, _, handle, _ = self._buffer.dispatch(
            (given.fp8, given.scales), num_tokens_per_rank=per_rank, is_token_in_rank=is_in_rank,
            num_tokens_per_expert=per_expert, topk_idx=given.ids, topk_weights=given.weights, config=self._configs[0],
            num_worst_tokens=case.tokens * self.ranks.size)
        return rows, (ids, weights), handle

    def experts(self, received):
        (rows, scales), found, _ = received
        if self.case.mode == "latency":
            return workload.experts_by_expert(rows, scales, found, self.first_expert)
        ids, weights = found
        answers = workload.experts_by_token(rows, scales, ids, weights, self.first_expert)
        return torch.where((ids >= 0).any(dim=1, keepdim=True), answers, torch.zeros_like(answers))

    def combine(self, received, answers):
        handle = received[2]
        if self.case.mode == "latency":
            return self._buffer.low_latency_combine(answers, self.given.ids, self.given.weights, handle)[0]
        return self._buffer.combine(answers, handle, config=self._configs[1])[0]
