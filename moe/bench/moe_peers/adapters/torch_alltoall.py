"""torch's all_to_all_single over NCCL: a row for each (token, expert), sorted by expert, and the weighted sum by torch's own
kernels. The number of rows of each rank is known beforehand, which spares this peer a round trip over the CPU."""

import torch
import torch.distributed as distributed

import workload

from .base import Base


class Adapter(Base):
    name, version = "torch all_to_all_single", torch.__version__
    limits_sms = False

    def prepare(self, case, given):
        super().prepare(case, given)
        flat = given.ids.flatten()
        order = flat.argsort(stable=True)
        self._tokens = order // case.topk
        self._back = order.argsort()
        self._experts_sent = flat[order].contiguous()
        sent = torch.bincount(flat // self.local_experts, minlength=self.ranks.size).tolist()
        received = [counts[self.ranks.rank] for counts in self.ranks.gather(sent)]
        self._splits = {"output_split_sizes": received, "input_split_sizes": sent}
        self._splits_back = {"output_split_sizes": sent, "input_split_sizes": received}
        self._experts_here = given.ids.new_empty(sum(received))
        distributed.all_to_all_single(self._experts_here, self._experts_sent, **self._splits)
        self._x = torch.empty(sum(received), case.hidden, dtype=torch.uint8, device=given.x.device)
        self._scales = torch.empty(sum(received), case.hidden // workload.BLOCK, device=given.x.device)
        self._rows_back = torch.empty(len(order), case.hidden, dtype=torch.bfloat16, device=given.x.device)

    def dispatch(self):
        rows, scales = workload.sent_rows(self.case, self.given)
        distributed.all_to_all_single(self._x, rows.view(torch.uint8)[self._tokens], **self._splits)
        distributed.all_to_all_single(self._scales, scales[self._tokens], **self._splits)
        return None

    def experts(self, received):
        rows = workload.dequantised(self._x.view(torch.float8_e4m3fn), self._scales)
        return (rows * workload.factor(self._experts_here)[:, None]).to(torch.bfloat16)

    def combine(self, received, answers):
        distributed.all_to_all_single(self._rows_back, answers, **self._splits_back)
        return workload.weighted_sums(self._rows_back[self._back], self.given)
