"""Symmetric memory through which functions that return new tensors pass: two halves for each team and kind of device.

Two calls in a row use different halves. A PE enters the call after the next only when every PE of the team has entered
the next one, and so has copied out of the half: each call needs data of every PE.
"""

from __future__ import annotations

import threading

import torch

from .. import arrays
from ..errors import InvalidArgument
from ..native import core

TYPE_CHECKING = False  # true for type checkers
if TYPE_CHECKING:
    from .._weft import Team

_MINIMUM_BYTES = 1 << 16
_teams = {0: core.world, 1: core.node_team}
_numbering = threading.Lock()
_spaces = {}


class _Space:
    def __init__(self, size, device):
        self.size = size
        # source and dest of both halves
        self.array = arrays.empty(4 * size, "uint8", device)
        self.bytes = torch.from_dlpack(self.array)
        self.turn = 0

    def half(self):
        self.turn ^= 1
        start = 2 * self.turn * self.size
        return self.bytes[start:start + self.size], self.bytes[start + self.size:start + 2 * self.size]


def team_number(team):
    """The number by which operators know a team: they take no objects."""
    if team is None:
        return 0
    with _numbering:
        for number, known in _teams.items():
            if known is team:
                return number
        number = len(_teams)
        _teams[number] = team
        return number


def team_of(number):
    """The team of a number."""
    return _teams[number]


def reserve(count: int, team: Team | None = None, device: torch.device | str = "cpu") -> None:
    """Makes room for all_to_all, all_gather and all_reduce of up to `count` bytes a PE (of the larger of their input and
    result) on a team. Collective over all PEs of the job, also those that are not in the team: with the same device,
    and for their own team of the same split. For all PEs (team None) it happens by itself, except in a CUDA graph.
    """
    key = (team_number(team), torch.device(device).type)
    space = _spaces.get(key)
    if space is None or space.array.is_freed or space.size < count:
        size = max(_MINIMUM_BYTES, 1 << max(0, count - 1).bit_length())
        _spaces.pop(key, None)
        _spaces[key] = _Space(size, device)  # the smaller one stays allocated: a graph may use it
    return None


def half_for(count, number, device):
    """Tensors of bytes for source and dest, of at least `count` bytes each."""
    space = _spaces.get((number, device.type))
    if space is None or space.array.is_freed or space.size < count:
        if number != 0:
            raise InvalidArgument(f"weft.torch: this team has no workspace of {count} bytes; call weft.torch.reserve({count}, "
                                  "team) on all PEs first")
        reserve(count, None, str(device))
        space = _spaces[(number, device.type)]
    return space.half()
