"""What is sent: tokens, routes and weights that follow from a seed alone, so that all libraries get the same bytes, and what
has to come back. Expert e multiplies a row by `factor(e)`; a row that went to a wrong expert shows in the sums."""

import dataclasses

import torch

BLOCK = 128
"""Values under one scale of fp8."""
FP8_MAX = 448.0


@dataclasses.dataclass(frozen=True)
class Case:
    """latency: rows in bf16 that dispatch quantises, one layout for all counts of tokens up to max_tokens. throughput: rows
    in fp8 with their scales, `sms` multiprocessors (0: as many as the library likes)."""

    mode: str
    tokens: int
    max_tokens: int
    sms: int = 0
    hidden: int = 7168
    experts: int = 256
    topk: int = 8

    @property
    def name(self):
        return f"{self.mode} {self.tokens} tokens" + (f" {self.sms} SMs" if self.sms else "")


@dataclasses.dataclass
class Tokens:
    """Of one rank. fp8 and scales are x, quantised for each BLOCK values."""

    x: torch.Tensor
    ids: torch.Tensor
    weights: torch.Tensor
    fp8: torch.Tensor = None
    scales: torch.Tensor = None


def factor(experts):
    """What an expert multiplies with, exact in bf16."""
    return 0.5 + (experts % 16).to(torch.float32) / 16


def tokens_of(case, rank, variant, device):
    """`variant`: another set of routes and rows of the same case."""
    random = torch.Generator().manual_seed(1_000_003 * variant + 7919 * rank + case.tokens)
    x = torch.randn(case.tokens, case.hidden, generator=random).to(torch.bfloat16)
    ids = torch.rand(case.tokens, case.experts, generator=random).topk(case.topk, dim=1).indices
    weights = torch.rand(case.tokens, case.topk, generator=random) + 0.1
    weights /= weights.sum(dim=1, keepdim=True)
    given = Tokens(x.to(device), ids.to(device), weights.to(device))
    given.fp8, given.scales = quantised(given.x)
    return given


def quantised(x):
    """(float8_e4m3fn [tokens, hidden], float32 [tokens, hidden / BLOCK])."""
    blocks = x.float().view(len(x), -1, BLOCK)
    scales = blocks.abs().amax(dim=2).clamp(min=1e-4) / FP8_MAX
    return (blocks / scales[:, :, None]).to(torch.float8_e4m3fn).view(x.shape), scales


def sent_rows(case, given):
    """The rows of a dispatch as fp8 and their scales, for libraries that do not quantise: latency mode does so in each call."""
    return quantised(given.x) if case.mode == "latency" else (given.fp8, given.scales)


def dequantised(rows, scales):
    """float32; the last axis of `scales` has one value for each BLOCK of `rows`. None: rows as they are."""
    if scales is None:
        return rows.float()
    blocks = rows.float().unflatten(-1, (-1, BLOCK))
    return (blocks * scales[..., None].to(torch.float32)).flatten(-2)


def experts_by_expert(rows, scales, counts, first_expert):
    """What the experts of a rank answer, in bf16. rows: [local experts, slots, hidden], the first counts[e] are valid."""
    out = torch.zeros(rows.shape, dtype=torch.bfloat16, device=rows.device)
    factors = factor(torch.arange(first_expert, first_expert + len(rows), device=rows.device))
    for expert, count in enumerate(counts.tolist()):
        if count:
            part = dequantised(rows[expert, :count], None if scales is None else scales[expert, :count])
            out[expert, :count] = (part * factors[expert]).to(torch.bfloat16)
    return out


def experts_by_token(rows, scales, ids, weights, first_expert):
    """The same for rows [..., hidden] that stand once, summed over the experts of this rank by their weights: ids [..., topk]
    are local, -1 where an expert is another rank's."""
    factors = torch.where(ids >= 0, weights * factor(ids + first_expert), torch.zeros_like(weights)).sum(dim=-1)
    return (dequantised(rows, scales) * factors[..., None]).to(torch.bfloat16)


def weighted_sums(rows, given):
    """[tokens, hidden] in bf16 of rows [tokens * topk, hidden], one for each expert of a token."""
    return torch.bmm(given.weights.to(torch.bfloat16)[:, None], rows.view(*given.weights.shape, -1))[:, 0]


def error_of(y, given):
    """The largest relative error of a row of the sums."""
    sums = (given.weights * factor(given.ids)).sum(dim=1, keepdim=True)
    expected = given.x.float() * sums
    distances = (y.float() - expected).norm(dim=1) / expected.norm(dim=1)
    return distances.max().item() if len(y) else 0.0
