"""weft.moe.deep_ep: what a program that imports deep_ep gets from Weft, by the same calls as uccl_ep.py."""

import torch
import torch.distributed as distributed
import weft
import weft.moe.deep_ep as deep_ep

from .deep_ep_calls import DeepEpCalls

DEFAULT_SMS = 20


class Adapter(DeepEpCalls):
    name, version = "weft.moe.deep_ep", weft.__version__
    kernels = {"dispatch": ("dispatch_kernel", "count_places"), "combine": ("combine_kernel",)}

    def __init__(self, ranks):
        super().__init__(ranks)
        weft.init()
        self._buffers = {}

    def prepare(self, case, given):
        super().prepare(case, given)
        deep_ep.Buffer.set_num_sms(case.sms or DEFAULT_SMS)
        key = case.mode, case.sms
        if key not in self._buffers:
            self._buffers[key] = deep_ep.Buffer(distributed.group.WORLD, low_latency_mode=case.mode == "latency", timeout=10)
        self._buffer, self._configs = self._buffers[key], (None, None)

    def close(self):
        torch.cuda.synchronize()
        for buffer in self._buffers.values():
            buffer.destroy()
        weft.finalize()
