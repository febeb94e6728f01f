"""Plan and Result: what dispatch gives."""

import copy
import dataclasses
import operator
from typing import Any

from ..errors import InvalidArgument


class Plan:
    """Where the rows of one dispatch came from and went to. Valid as long as it is kept, also after later dispatches: for
    combine, for a backward pass, and for a dispatch of other rows along the same routes (Exchange.dispatch, plan=)."""

    def __init__(self, handle, topk_ids, topk_weights):
        self._handle, self._rows_shape = handle, None
        self.topk_ids = topk_ids
        self.topk_weights = topk_weights

    @property
    def tokens(self):
        """Number of tokens of this PE."""
        return self.topk_ids.shape[0]

    def __repr__(self):
        return f"weft.moe.Plan(tokens={self.tokens}, topk={self.topk_ids.shape[1]})"


@dataclasses.dataclass(eq=False, repr=False)
class Result:
    """What dispatch received. The first axes of x, scales and weights, by layout:

    expert_padded: [local experts, ranks * max_tokens]. expert_compact: [rows], expert after expert, each from a multiple of
    `alignment`, zeros between them. rank_major: [ranks, max_tokens], as they arrived, no copy. rank_compact: [rows].

    Rows beyond the counts are undefined. The memory is reused by the second dispatch after this one, which fails while a
    view of it is alive.
    """

    x: Any
    """Rows: [..., hidden] ([..., hidden / 2] bytes of nvfp4)."""
    scales: Any
    """[..., blocks], or None."""
    row_scales: Any
    """nvfp4: one float for each row, [...]; else None."""
    weights: Any
    """float32. Expert layouts: of each row. Rank layouts: [..., topk]."""
    ids: Any
    """Rank layouts: int32 [..., topk], local experts, -1 for those of other ranks and in empty slots; else None."""
    counts: Any
    """int32: rows of each local expert, or of each source rank."""
    offsets: Any
    """int64: where the rows of each begin, and the end."""
    plan: Plan
    """For combine."""
    outputs: Any
    """With outputs_in_place: [..., hidden] of the output's type, in the order of x, undefined. For the rows that go to combine. Else
    None."""

    def trimmed(self):
        """In compact layouts, the rows that came, in memory of their own, and a plan for combine with as many rows. On GPUs x has room
        for all that could come, and this waits for the stream to learn how many did; delete this Result, and that room is free again. On
        CPUs it is a copy that later dispatches leave alone. outputs is None."""
        if len(self.x.shape) != 2:
            raise InvalidArgument(f"weft.moe.Result.trimmed: x has the shape {list(self.x.shape)}; it is for rank_compact and expert_compact, "
                                  "whose rows lie one after the other")
        count = int(self.offsets[-1])
        plan = copy.copy(self.plan)
        plan._rows_shape = (count, *plan._rows_shape[1:])

        def own(part, rows=None):
            return None if part is None else part[:rows].clone() if hasattr(part, "clone") else part[:rows].copy()
        rows = [own(part, count) for part in (self.x, self.scales, self.row_scales, self.weights, self.ids)]
        return Result(*rows, own(self.counts), own(self.offsets), plan, None)

    def __repr__(self):
        parts = [f"{field.name}={_shape_text(getattr(self, field.name))}" for field in dataclasses.fields(self)
                 if field.name != "plan" and getattr(self, field.name) is not None]
        return f"weft.moe.Result({', '.join(parts)}, plan={self.plan!r})"


def _shape_text(array):
    """Not the numbers: those of a GPU would be waited for, and rows beyond the counts are undefined."""
    return f"{str(array.dtype).removeprefix('torch.')}{list(array.shape)}"


def routes_of(x, topk_ids, topk_weights, plan, bound):
    """(topk_ids, topk_weights) of a dispatch, for which a plan may stand."""
    if plan is not None:
        if bound is not None:
            raise InvalidArgument("weft.moe: pass either plan or bound, not both")
        if not isinstance(plan, Plan):
            raise InvalidArgument(f"weft.moe: plan is {type(plan).__name__}; give the plan of a Result")
        topk_ids = plan.topk_ids
        topk_weights = plan.topk_weights if topk_weights is None else topk_weights
    for value, name in ((x, "x"), (topk_ids, "topk_ids")):
        if value is None:
            raise InvalidArgument(f"weft.moe: {name} is missing; give x and topk_ids (or a plan)")
    return topk_ids, topk_weights


def number_of(bound):
    """A bound for tokens of the CPU: an integer, or an array with one."""
    try:
        number = operator.index(bound.item() if hasattr(bound, "item") else bound)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidArgument(f"weft.moe: bound is {bound!r}; give one integer") from error
    if number < 0:
        raise InvalidArgument(f"weft.moe: bound is {number}; give the number of tokens that are sent")
    return number
