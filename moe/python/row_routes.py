"""What programs with DeepEP's normal mode ask besides the rows: where tokens go, before a dispatch, and which experts its rows name,
behind it. On a GPU each is one kernel, which the current stream runs; on CPUs torch's operators."""

import torch

from ..native import core
from .gpu import stream_of


def destinations(ids, experts, ranks):
    """(int32 [ranks], int32 [experts], bool [tokens, ranks]): how many tokens go to each rank and to each expert, and which go where.
    ids: [tokens, topk]; -1 is no expert."""
    if not ids.is_cuda:
        return _destinations_on_cpu(ids, experts, ranks)
    ids = ids.long().contiguous()
    tokens, topk = ids.shape
    of_rank, of_expert = (torch.empty(count, dtype=torch.int32, device=ids.device) for count in (ranks, experts))
    in_rank = torch.empty(tokens, ranks, dtype=torch.bool, device=ids.device)
    core.moe_count_destinations((tokens, topk, experts, ranks),
                                (ids.data_ptr(), of_rank.data_ptr(), of_expert.data_ptr(), in_rank.data_ptr()), stream_of(ids.get_device()))
    return of_rank, of_expert, in_rank


def of_rows(exchange, got, rows, with_weights):
    """(ids int64 [rows, topk], weights float32 or None, rows of each local expert, rows that came) of a dispatch in rank_compact. ids
    are local, -1 for other ranks' experts and in rows that did not come; there weights are 0. rows: so many, and the counts are None;
    or 0: those that came, which a GPU is waited for, and what its kernels found is raised."""
    if not got.x.is_cuda:
        return _of_rows_on_cpu(exchange, got, rows, with_weights)
    most = rows or exchange._rows_max
    ids = torch.empty(most, exchange.topk, dtype=torch.int64, device=exchange.device)
    weights = torch.empty(most, exchange.topk, dtype=torch.float32, device=exchange.device) if with_weights else None
    counts = None if rows else torch.empty(exchange.local_experts + 1, dtype=torch.int64, device=exchange.device)
    exchange.show_row_routes(got, ids, weights, counts)
    if rows:
        return ids, weights, None, rows
    exchange.check()
    *counts, came = counts.tolist()
    return ids[:came], weights if weights is None else weights[:came], counts, came


def _destinations_on_cpu(ids, experts, ranks):
    in_expert = _experts_of(ids, experts)
    share, longer = divmod(experts, ranks)
    if longer:
        runs = [share + (rank < longer) for rank in range(ranks)]
        in_rank = torch.stack([run.any(1) for run in in_expert.split(runs, 1)], 1)
    else:
        in_rank = in_expert.unflatten(1, (ranks, share)).any(2)
    return in_rank.sum(0, dtype=torch.int32), in_expert.sum(0, dtype=torch.int32), in_rank


def _of_rows_on_cpu(exchange, got, rows, with_weights):
    came = len(got.ids)
    count = rows or came
    shown = min(count, came)
    ids = torch.full((count, exchange.topk), -1, dtype=torch.int64)
    ids[:shown] = got.ids[:shown]
    weights = None
    if with_weights:
        weights = torch.zeros(count, exchange.topk)
        weights[:shown] = torch.where(ids[:shown] >= 0, got.weights[:shown], 0.0)
    return ids, weights, None if rows else _experts_of(ids, exchange.local_experts).sum(0).tolist(), count


def _experts_of(ids, experts):
    """bool [tokens, experts]: which experts each token names."""
    named = torch.zeros(len(ids), experts + 1, dtype=torch.bool)
    return named.scatter_(1, torch.where((ids >= 0) & (ids < experts), ids.long(), experts), True)[:, :experts]
