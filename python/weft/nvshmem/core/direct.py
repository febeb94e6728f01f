"""Who this PE is."""

from ... import job
from ...native import core
from .init_fini import init_status
from .nvshmem_types import ComparisonType, InitStatus, NvshmemInvalid, SignalOp, raised_by_nvshmem

__all__ = ["ComparisonType", "InitStatus", "SignalOp", "init_status", "my_pe", "n_pes", "team_my_pe", "team_n_pes"]


def my_pe():
    with raised_by_nvshmem():
        return job.pe()


def n_pes():
    with raised_by_nvshmem():
        return job.pe_count()


def team_my_pe(team):
    with raised_by_nvshmem():
        return team_of(team).pe


def team_n_pes(team):
    with raised_by_nvshmem():
        return team_of(team).pe_count


def team_of(team):
    """weft's team of a number of Teams."""
    known = (core.world, core.node_team, core.machine_team, core.machine_peers)
    if not 0 <= team < len(known):
        raise NvshmemInvalid(f"nvshmem.core: there is no team {team}; there are {', '.join(f'Teams.{one}' for one in _NAMES)}")
    return known[team]


_NAMES = ("TEAM_WORLD", "TEAM_SHARED", "TEAM_NODE", "TEAM_SAME_MYPE_NODE")
