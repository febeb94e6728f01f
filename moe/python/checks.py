"""What exchanges on CPUs and on GPUs ask of arrays: each sentence once. Shapes are tuples."""

from ..errors import InvalidArgument, WrongShape
from .elements import GIVEN, OF_DISPATCH, UNWEIGHTED
from .results import Plan


def require_tokens(shape, columns, type_name):
    """Of x: [tokens, columns]. The engine refuses too many tokens."""
    if len(shape) != 2 or shape[1] != columns:
        raise WrongShape(f"weft.moe: x has the shape {tuple(shape)}, and [tokens, {columns}] of {type_name} is needed")


def require_routes(shape, name, tokens, topk):
    if tuple(shape) != (tokens, topk):
        raise WrongShape(f"weft.moe: {name} has the shape {tuple(shape)}, and [tokens, topk] = {(tokens, topk)} is needed")


def require_plan(plan, kind=Plan):
    if not isinstance(plan, kind) or plan._rows_shape is None:
        raise InvalidArgument(f"weft.moe: plan is {type(plan).__name__}; give the plan of a Result of this exchange")


def require_outputs(expert_out):
    if expert_out is None:
        raise InvalidArgument("weft.moe: expert_out is missing; give rows in the shape of Result.x")


def wrong_output(dtype, output):
    return f"weft.moe: expert_out is of {dtype}, and the exchange combines {output}; convert it, or make the exchange with output="


def weighting_of(weights, weighted, is_plain):
    """The number of a weft_moe_weighting. is_plain: weights of the dispatch do not count here."""
    if weights is not None and not weighted:
        raise InvalidArgument("weft.moe: topk_weights were given with weighted=False; leave out one of both")
    return UNWEIGHTED if is_plain or not weighted else GIVEN if weights is not None else OF_DISPATCH


def sums_shape(plan, topk, hidden, is_lanes):
    """Of what combine returns."""
    return (plan.tokens, topk, hidden) if is_lanes else (plan.tokens, hidden)
