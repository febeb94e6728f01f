"""The rows of a low_latency_dispatch of weft.moe.deep_ep, and their scales, as DeepEP lays them out."""

import dataclasses

import torch


@dataclasses.dataclass
class ScalesOf:
    """The scales of rows of a low_latency_dispatch: [local experts, rows, words] of float32, or of int32 with four powers each. Rows of
    a word lie side by side in memory, as products with scaled blocks read them."""
    hidden: int
    are_powers: bool
    are_packed: bool

    @property
    def name(self):
        return "ue8m0" if self.are_powers else "float32"

    @property
    def are_laid_out(self):
        """So by an exchange (scales_by_column)."""
        return self.are_powers == self.are_packed and self.hidden % (512 if self.are_packed else 128) == 0

    def empty(self, experts, rows, device):
        words = -(-self.hidden // (512 if self.are_packed else 128))
        return torch.empty(experts, words, rows, dtype=torch.int32 if self.are_packed else torch.float32, device=device).transpose(1, 2)

    def of(self, codes):
        """From those of an exchange."""
        return codes if self.are_laid_out else scales_of(codes, self.are_powers, self.are_packed)


class RowsOnCpu:
    """The rows of a low_latency_dispatch, in tensors of their own, since those of an exchange are used again."""

    def __init__(self, exchange, tokens, scales, is_later):
        self._exchange, self._scales = exchange, scales
        exchange.dispatch(*tokens, phase="send")
        self.plan = exchange._sending[2]
        self.x = torch.empty(*exchange._rows, exchange.hidden, dtype=torch.float8_e4m3fn if scales else torch.bfloat16)
        self.counts = torch.empty(exchange._rows[0], dtype=torch.int32)
        self.scales = scales and scales.empty(*exchange._rows, "cpu")

    def receive(self):
        got = self._exchange.dispatch(phase="recv")
        self.counts.copy_(got.counts)
        for expert, count in enumerate(got.counts.tolist()):
            self.x[expert, :count] = got.x[expert, :count]
            if self._scales:
                self.scales[expert, :count] = self._scales.of(got.scales[expert, :count])


class RowsOnGpu:
    """The same, in tensors that the kernels fill. If they are not wanted later, one kernel sends and receives."""

    def __init__(self, exchange, tokens, scales, is_later):
        self._exchange, self._scales, self._is_later = exchange, scales, is_later
        self._got = exchange._dispatch_for_later(*tokens) if is_later else exchange.dispatch(*tokens)
        self.plan, self.x, self.counts = self._got.plan, self._got.x, self._got.counts
        self._copies = scales is not None and not scales.are_laid_out
        self.scales = scales.empty(*exchange._rows, exchange.device) if self._copies else self._got.scales

    def receive(self):
        if self._is_later:
            self._exchange._receive_later(self._got)
        if self._copies:
            self.scales.copy_(self._scales.of(self._got.scales))


def scales_of(codes, are_powers, are_packed):
    if not are_powers:
        return codes
    if are_packed:
        padded = torch.nn.functional.pad(codes, (0, -codes.shape[-1] % 4))
        return padded.contiguous().view(torch.int32)
    return torch.exp2(codes.float() - 127)
