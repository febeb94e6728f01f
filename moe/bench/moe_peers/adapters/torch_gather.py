"""torch and NCCL without any MoE kernel: every rank gets all rows (all-gather), and sums come back by a reduce-scatter. Rows
are quantised by torch's own kernels; what nobody's expert needs is sent too."""

import torch
import torch.distributed as distributed

import workload

from .base import Base


class Adapter(Base):
    name, version = "torch all-gather and reduce-scatter", torch.__version__
    limits_sms = False

    def prepare(self, case, given):
        super().prepare(case, given)
        rows = self.ranks.size * case.tokens
        device = given.x.device
        self._x = torch.empty(rows, case.hidden, dtype=torch.uint8, device=device)
        self._scales = torch.empty(rows, case.hidden // workload.BLOCK, device=device)
        self._ids = torch.empty(rows, case.topk, dtype=torch.int64, device=device)
        self._weights = torch.empty(rows, case.topk, device=device)
        self._sums = torch.empty(case.tokens, case.hidden, dtype=torch.bfloat16, device=device)

    def dispatch(self):
        given = self.given
        rows, scales = workload.sent_rows(self.case, given)
        for here, mine in ((self._x, rows.view(torch.uint8)), (self._scales, scales), (self._ids, given.ids),
                           (self._weights, given.weights)):
            distributed.all_gather_into_tensor(here, mine)
        return None

    def experts(self, received):
        ids = self._ids - self.first_expert
        ids = torch.where((ids >= 0) & (ids < self.local_experts), ids, -1)
        rows = self._x.view(torch.float8_e4m3fn)
        return workload.experts_by_token(rows, self._scales, ids, self._weights, self.first_expert)

    def combine(self, received, answers):
        distributed.reduce_scatter_tensor(self._sums, answers)
        return self._sums
