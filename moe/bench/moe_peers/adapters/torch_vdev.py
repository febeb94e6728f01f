"""torch's all_to_all_vdev over NVSHMEM: a row for each (token, expert), sorted by expert, with counts that never leave the
GPU; layout, quantisation and the weighted sum by torch's own kernels. all_to_all_vdev_2d, which sorts the rows that come by
expert, takes at most 16 experts a rank (NUM_TILES in torch 2.11), and so not 256 on fewer than 16 ranks."""

import os

import torch
import torch.distributed as distributed
import torch.distributed._symmetric_memory as symmetric_memory

import workload

from .base import Base

os.environ.setdefault("NVSHMEM_SYMMETRIC_SIZE", str(8 << 30))  # read when the first buffer is made

UNIT = 256
"""Bytes to which rows are padded: a peer's rows are split evenly among up to 32 blocks, and copied by 8 bytes or more."""


class Adapter(Base):
    name, version = "torch all_to_all_vdev", torch.__version__
    limits_sms = False

    def __init__(self, ranks):
        super().__init__(ranks)
        symmetric_memory.set_backend("NVSHMEM")
        self._group = distributed.group.WORLD.group_name
        self._buffers = {}

    def prepare(self, case, given):
        super().prepare(case, given)
        sent = case.tokens * case.topk
        self._scales_at = case.hidden
        self._id_at = self._scales_at + case.hidden // workload.BLOCK * 4
        width = -(-(self._id_at + 4) // UNIT) * UNIT
        self._rows = self._symmetric("rows", sent, width, torch.uint8)
        self._received = self._symmetric("received", sent * self.ranks.size, width, torch.uint8)
        self._answers = self._symmetric("answers", sent * self.ranks.size, case.hidden, torch.bfloat16)
        self._back = self._symmetric("back", sent, case.hidden, torch.bfloat16)
        self._splits = self._symmetric("splits", 1, self.ranks.size, torch.int64)[0]
        self._came = self._symmetric("came", 2, self.ranks.size, torch.int64)
        self._splits_back = self._symmetric("splits back", 1, self.ranks.size, torch.int64)[0]
        self._came_back = self._symmetric("came back", 2, self.ranks.size, torch.int64)

    def _symmetric(self, name, rows, width, dtype):
        """Buffers of earlier cases stay, since all ranks have to free one together."""
        key = (name, rows, width, dtype)
        if key not in self._buffers:
            buffer = symmetric_memory.empty(rows, width, dtype=dtype, device=self.ranks.device)
            symmetric_memory.rendezvous(buffer, self._group)
            self._buffers[key] = buffer.zero_()
        return self._buffers[key]

    def dispatch(self):
        rows, scales = workload.sent_rows(self.case, self.given)
        flat = self.given.ids.flatten()
        order = flat.argsort(stable=True)
        self._places = order.argsort()
        self._splits.zero_().scatter_add_(0, flat // self.local_experts, torch.ones_like(flat))
        tokens = order // self.case.topk
        self._rows[:, : self._scales_at] = rows.view(torch.uint8)[tokens]
        self._rows[:, self._scales_at : self._id_at] = scales.view(torch.uint8)[tokens]
        self._rows[:, self._id_at : self._id_at + 4] = flat[order].to(torch.int32)[:, None].view(torch.uint8)
        torch.ops.symm_mem.all_to_all_vdev(self._rows, self._received, self._splits, self._came, self._group)
        return None

    def experts(self, received):
        """Behind the rows that came, also of what earlier calls left there."""
        values = self._received[:, : self._scales_at].view(torch.float8_e4m3fn)
        scales = self._received[:, self._scales_at : self._id_at].contiguous().view(torch.float32)
        ids = self._received[:, self._id_at : self._id_at + 4].contiguous().view(torch.int32)[:, 0]
        self._answers[:] = (workload.dequantised(values, scales) * workload.factor(ids)[:, None]).to(torch.bfloat16)
        return self._answers

    def combine(self, received, answers):
        self._splits_back[:] = self._came[0]
        torch.ops.symm_mem.all_to_all_vdev(answers, self._back, self._splits_back, self._came_back, self._group)
        return workload.weighted_sums(self._back[self._places], self.given)
