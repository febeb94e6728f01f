"""What run.py and its workers ask of a library."""


class Base:
    """An adapter is made once, when `ranks` (measure.Ranks) have met, and joins them in its library. Between prepare and the
    next one it is asked for the same case again and again."""

    name = version = ""
    modes = ("latency", "throughput")
    """Of workload.Case."""
    kernels = None
    """{"dispatch": (a part of a kernel's name, ...), "combine": ...} for the profiler. None: not measured."""
    can_be_captured = True
    """A pair, in a CUDA graph."""

    limits_sms = True
    """Whether Case.sms is obeyed; else throughput is measured once, as with 0."""

    def __init__(self, ranks):
        self.ranks = ranks
        self.case = self.given = None

    def prepare(self, case, given):
        """Makes what the case needs, for this rank's workload.Tokens. What other cases need may stay."""
        self.case, self.given = case, given

    @property
    def local_experts(self):
        return self.case.experts // self.ranks.size

    @property
    def first_expert(self):
        return self.ranks.rank * self.local_experts

    def dispatch(self):
        """Enqueues a dispatch on the current stream, and returns what it received."""
        raise NotImplementedError

    def experts(self, received):
        """The answers of this rank's experts, as combine takes them."""
        raise NotImplementedError

    def combine(self, received, answers):
        """Enqueues a combine on the current stream, and returns the sums, [tokens, hidden] in bf16."""
        raise NotImplementedError

    def check(self):
        """Raises what only a kernel has noticed."""

    def close(self):
        """Leaves the job."""
