"""Who the PE is, signals and order in kernels of numba, as NVSHMEM's functions of the same names."""

from .calls import INT, NOTHING, POINTER, c_function, device_function, types
from .rma import require_signal

__all__ = ["fence", "my_pe", "n_pes", "quiet", "signal_op", "signal_wait_until", "team_my_pe", "team_n_pes"]

_my_pe = c_function("nvshmem_my_pe", INT)
_n_pes = c_function("nvshmem_n_pes", INT)
_team_my_pe = c_function("nvshmem_team_my_pe", INT, INT)
_team_n_pes = c_function("nvshmem_team_n_pes", INT, INT)
_signal_op = c_function("nvshmemx_signal_op", NOTHING, POINTER, types.uint64, INT, INT)
_signal_wait_until = c_function("nvshmem_signal_wait_until", types.uint64, POINTER, INT, types.uint64)
_fence = c_function("nvshmem_fence", NOTHING)
_quiet = c_function("nvshmem_quiet", NOTHING)


@device_function
def my_pe():
    return lambda: _my_pe(())


@device_function
def n_pes():
    return lambda: _n_pes(())


@device_function
def team_my_pe(team):
    return lambda team: _team_my_pe((team,))


@device_function
def team_n_pes(team):
    return lambda team: _team_n_pes((team,))


@device_function
def signal_op(signal_var, signal_val, signal_op, pe):
    """Updates the signal of `pe` by a SignalOp."""
    require_signal(signal_var)
    return lambda signal_var, signal_val, signal_op, pe: _signal_op((signal_var, signal_val, signal_op, pe))


@device_function
def signal_wait_until(signal_var, cmp, value):
    """Until this PE's signal and `value` compare so, a ComparisonType. The signal as it was then."""
    require_signal(signal_var)
    return lambda signal_var, cmp, value: _signal_wait_until((signal_var, cmp, value))


@device_function
def fence():
    """What was put before is visible before what is put later, at each PE."""
    return lambda: _fence(())


@device_function
def quiet():
    """Completes what was put before."""
    return lambda: _quiet(())
