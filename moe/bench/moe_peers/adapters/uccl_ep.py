"""UCCL-EP, which has the kernels and the Python interface of DeepEP v1: package uccl, and `deep_ep` of its ep/deep_ep_wrapper
of the same version. Latency: low_latency_dispatch and low_latency_combine. Throughput: dispatch, with layout and counts, and
combine, with num_worst_tokens, so that the CPU waits for nothing and a pair can be captured.

Without an RDMA device the library takes host memory for its buffers, which its kernels then cannot reach over NVLink. On one
machine they are put into GPU memory here, as they are on a machine with such devices."""

import ctypes

import torch
import torch.distributed as distributed
import uccl
from uccl import ep

from .deep_ep_calls import DeepEpCalls

ATOMIC_BYTES = 1 << 20
DEFAULT_SMS, MOST_SMS = 20, 48
BUFFER_ALIGNMENT = 128


def _keep_buffers_on_the_gpu():
    if hasattr(ep, "get_rdma_buffer"):
        del ep.get_rdma_buffer
    ep.can_register_rdma_gpu_buffer = lambda *arguments, **named: True


_keep_buffers_on_the_gpu()
import deep_ep  # noqa: E402: looks at uccl.ep when it is imported


class Adapter(DeepEpCalls):
    name, version = "UCCL-EP (DeepEP v1)", uccl.__version__
    kernels = {"dispatch": ("internode_ll::dispatch", "get_dispatch_layout", "notify_dispatch", "intranode::dispatch"),
               "combine": ("internode_ll::combine", "notify_combine", "intranode::combine")}

    def __init__(self, ranks):
        super().__init__(ranks)
        self._buffers, self._atomics = {}, []

    # ---- Buffers

    def prepare(self, case, given):
        super().prepare(case, given)
        if case.mode not in self._buffers:
            self._buffers[case.mode] = self._low_latency_buffer() if case.mode == "latency" else self._throughput_buffer()
        self._buffer = self._buffers[case.mode]
        if case.mode == "throughput":
            deep_ep.Buffer.set_num_sms(case.sms or DEFAULT_SMS)
            self._configs = (deep_ep.Buffer.get_dispatch_config(self.ranks.size),
                             deep_ep.Buffer.get_combine_config(self.ranks.size))

    def _low_latency_buffer(self):
        case = self.case
        torch.cuda.empty_cache()  # other ranks map the whole allocation, so the buffer must be at its beginning
        size = deep_ep.Buffer.get_low_latency_rdma_size_hint(case.max_tokens, case.hidden, self.ranks.size, case.experts)
        buffer = deep_ep.Buffer(distributed.group.WORLD, 0, _aligned(size), low_latency_mode=True,
                                num_qps_per_rank=self.local_experts, explicitly_destroy=True, is_intranode=True)
        # Kernels clear counters there in each call; in host memory that would be over PCIe.
        atomics = torch.zeros(ATOMIC_BYTES, dtype=torch.uint8, device=self.ranks.device)
        self._atomics.append((buffer.proxies, buffer.proxies[0].get_atomic_buffer_ptr(), atomics))
        _set_atomics(buffer.proxies, _capsule(atomics.data_ptr()))
        buffer.connect_atomic_buffer(buffer.proxies[0])
        return buffer

    def _throughput_buffer(self):
        row_bytes = 2 * self.case.hidden
        deep_ep.Buffer.set_num_sms(MOST_SMS)
        size = max(config(self.ranks.size).get_nvl_buffer_size_hint(row_bytes, self.ranks.size)
                   for config in (deep_ep.Buffer.get_dispatch_config, deep_ep.Buffer.get_combine_config))
        return deep_ep.Buffer(distributed.group.WORLD, _aligned(size), 0, explicitly_destroy=True, is_intranode=True)

    def close(self):
        torch.cuda.synchronize()
        for proxies, address, _ in self._atomics:
            _set_atomics(proxies, address)
        for buffer in self._buffers.values():
            buffer.destroy()


def _set_atomics(proxies, address):
    for proxy in proxies:
        proxy.set_atomic_buffer_ptr(address)


def _capsule(address):
    """An address as nanobind takes it."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(address, b"nb_handle", None)


def _aligned(size):
    return (size + BUFFER_ALIGNMENT - 1) // BUFFER_ALIGNMENT * BUFFER_ALIGNMENT
