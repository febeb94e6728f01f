"""all_to_all_vdev, all_to_all_vdev_2d and all_to_all_vdev_2d_offset: rows by splits, in the shapes of torch.ops.symm_mem.

Each PE tells every other how many rows it has for it and where they start, finds the place of all that it gets, and reads
them. The splits pass through the CPU, also for tensors on a GPU: these operators wait for the stream, and a CUDA graph
cannot capture them (weft.moe can).
"""

import torch

from ..errors import WrongShape
from ..native import core
from .operators import define, exchange_blocks, gather, nothing
from .workspace import team_of


def _starts(counts):
    """Where each of the parts begins, if they follow each other in this order."""
    flat = counts.reshape(-1)
    return (flat.cumsum(0) - flat).reshape(counts.shape)


def _aligned_starts(by_expert, alignment):
    """As _starts; the first row of each expert is at a multiple of the alignment."""
    rows = by_expert.sum(1)
    of_expert = _starts((rows + alignment - 1) // alignment * alignment)
    return of_expert[:, None] + by_expert.cumsum(1) - by_expert


def _splits(tensor, pes, name):
    if tensor.numel() == 0 or tensor.shape[-1] % pes:
        raise WrongShape(f"weft.torch.{name}: the splits have the shape {tuple(tensor.shape)}; give a multiple of {pes}, the "
                         "number of PEs")
    return tensor.cpu().to(torch.int64)


def _require_room(name, ends, out, team):
    """All PEs raise where one has no room."""
    need = int(ends.max()) if ends.numel() else 0
    rooms = gather(torch.tensor([need, out.shape[0]], device=out.device), team).reshape(-1, 2).tolist()
    for pe, (needed, room) in enumerate(rooms):
        if needed > room:
            raise WrongShape(f"weft.torch.{name}: {needed} rows arrive, and out of PE {pe} has {room}; make it larger")


def _fetch(source, out, parts, team):
    """Reads the rows of all PEs: parts are tensors by [PE, expert] of numbers of rows, where they start there, and here."""
    team_object = team_of(team)
    for pe, (counts, starts, places) in enumerate(zip(*(part.tolist() for part in parts))):
        world_pe = team_object.translate(pe, core.world)
        for count, start, place in zip(counts, starts, places):
            if count:
                theirs = torch.as_strided(source, (count, *source.shape[1:]), source.stride(),
                                          source.storage_offset() + start * source.stride(0))
                core.get_nbi(out[place:place + count], theirs, world_pe)
    if not out.is_cuda:
        core.quiet()


def _shuffle(name, tensors, splits, order, team):
    """splits: numbers and starts of the rows for each [PE, expert]. order(got): the places in out of what came, and both of
    them as out_splits_offsets has them."""
    source, out, out_splits_offsets = tensors
    # Each PE learns how many rows it gets of every expert, and where they start at their source.
    # On the device of the rows: there it is ordered behind the work that makes them.
    got = exchange_blocks(torch.stack(splits, 1).to(source.device), team).cpu()
    counts, starts = got[:, 0], got[:, 1]
    places, found = order(counts)
    _require_room(name, places + counts, out, team)
    _fetch(source, out, (counts, starts, places), team)
    out_splits_offsets.copy_(torch.stack([part.reshape(-1) for part in found]).reshape(out_splits_offsets.shape))
    team_of(team).sync(**({"stream": torch.cuda.current_stream(out.device)} if out.is_cuda else {}))


def _vdev_2d(source, out, in_splits, out_splits_offsets, team=0, major_align=None, name="all_to_all_vdev_2d"):
    pes = team_of(team).pe_count
    splits = _splits(in_splits, pes, name).reshape(pes, -1)

    def by_expert(counts):
        of_expert = counts.t().contiguous()
        places = _aligned_starts(of_expert, 1 if major_align is None else major_align)
        return places.t(), (of_expert, places)

    _shuffle(name, (source, out, out_splits_offsets), (splits, _starts(splits)), by_expert, team)


def _vdev(source, out, in_splits, out_splits_offsets, team=0):
    _vdev_2d(source, out, in_splits, out_splits_offsets, team, None, "all_to_all_vdev")


def _vdev_2d_offset(source, out, in_splits_offsets, out_splits_offsets, team=0):
    name, pes = "all_to_all_vdev_2d_offset", team_of(team).pe_count
    splits, starts = (part.reshape(-1, pes).t().contiguous() for part in _splits(in_splits_offsets, pes, name).reshape(2, -1))

    def by_pe(counts):
        places = _starts(counts)
        return places, (counts, places)

    _shuffle(name, (source, out, out_splits_offsets), (splits, starts), by_pe, team)


define("all_to_all_vdev(Tensor input, Tensor(a!) out, Tensor in_splits, Tensor(b!) out_splits_offsets, int team=0) -> ()",
       _vdev, nothing)
define("all_to_all_vdev_2d(Tensor input, Tensor(a!) out, Tensor in_splits, Tensor(b!) out_splits_offsets, int team=0, "
       "int? major_align=None) -> ()", _vdev_2d, nothing)
define("all_to_all_vdev_2d_offset(Tensor input, Tensor(a!) out, Tensor in_splits_offsets, Tensor(b!) out_splits_offsets, "
       "int team=0) -> ()", _vdev_2d_offset, nothing)
