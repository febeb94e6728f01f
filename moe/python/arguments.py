"""The arguments of weft.moe.Exchange as the engine takes them, and how much memory they ask for."""

import dataclasses

from ..errors import InvalidArgument
from ..native import core
from .elements import LAYOUTS, SCALES, TYPES, choice

ON_TIMEOUT = {"error": 0, "mask": 1}
ROW_PER = {"auto": 0, "rank": 1, "node": 2}


@dataclasses.dataclass
class Arguments:
    """Names and sizes that were given, and those of defaults; config: a weft_moe_config of them all but the team."""
    max_tokens: int
    hidden: int
    experts: int
    topk: int
    payload: str
    scales: str
    output: str
    layout: str
    config: "core.MoeConfig"


def integer(value, name):
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidArgument(f"weft.moe: {name} is {value!r}; give an integer")
    number = value.__index__()
    if not -2**31 <= number < 2**31:
        raise InvalidArgument(f"weft.moe: {name} is {number}; give an integer of 32 bits")
    return number


def seconds(timeout):
    """0 stands for the default."""
    if timeout is None:
        return 0.0
    try:
        found = float(timeout)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"weft.moe: timeout is {timeout!r}; give seconds, or None for the default") from error
    if not found > 0:
        raise InvalidArgument(f"weft.moe: timeout is {timeout} s; give more than 0, or None for the default")
    return found


def parsed(given, on_gpu):
    """Of the arguments of Exchange by their names. Throws InvalidArgument, which names the one that is wrong."""
    payload = choice(given["payload"], TYPES, "payload")
    output = choice(given["output"] or (payload if TYPES[payload] <= 4 else "bfloat16"), TYPES, "output")
    scales = choice(given["scales"] or ("nvfp4" if payload == "nvfp4" else "none"), SCALES, "scales")
    layout = choice(given["layout"], LAYOUTS, "layout")
    in_place = bool(given["outputs_in_place"])
    if in_place and not LAYOUTS[layout].is_by_rank:
        raise InvalidArgument(f"weft.moe: outputs_in_place is given, and the layout is {layout}; choose "
                              f"{' or '.join(name for name, of in LAYOUTS.items() if of.is_by_rank)}, or leave it out")
    sizes = [integer(given[name], name) for name in ("max_tokens", "hidden", "experts", "topk")]
    config = core.MoeConfig()
    config.max_tokens, config.hidden, config.experts, config.topk = sizes
    config.payload, config.scales, config.output = TYPES[payload], SCALES[scales], TYPES[output]
    config.layout, config.alignment = LAYOUTS[layout].number, integer(given["alignment"], "alignment")
    config.on_timeout = ON_TIMEOUT[choice(given["on_timeout"], ON_TIMEOUT, "on_timeout")]
    config.memory, config.blocks = int(on_gpu), integer(given["blocks"], "blocks")
    config.row_per = ROW_PER[choice(given["row_per"], ROW_PER, "row_per")]
    config.outputs_in_place, config.scales_by_column = int(on_gpu and in_place), int(bool(given["scales_by_column"]))
    config.timeout_s = seconds(given["timeout"])
    return Arguments(*sizes, payload, scales, output, layout, config)


def exchange_bytes(team=None, *, ranks=None, node_size=None, max_tokens, hidden, experts, topk, payload="bfloat16", scales=None,
                   output=None, layout="expert_padded", alignment=1, timeout=None, on_timeout="error", device="cpu", blocks=0,
                   row_per="auto", outputs_in_place=False, scales_by_column=False):
    """The bytes of symmetric memory that weft.moe.Exchange takes on each PE with these arguments, which are its own. The functions
    that allocate answer, and nothing is allocated.

    ranks, node_size: of a job with so many PEs, so many on each node (default: all on one). It need not be there, so this can be
    asked on any machine, without weft.init and without a GPU. Without ranks: of the PEs of `team`, default weft.world, in this job.
    Local. weft.InvalidArgument for what Exchange refuses.

    Compare it with heap_size of weft.init (WEFT_HEAP_SIZE), or, for device="cuda", with the memory of the GPU, whose heap grows.
    Not counted: a Result, which is memory of this process (moe/docs/MOE.md has its size).
    """
    given = locals()
    if ranks is None and node_size is not None:
        raise InvalidArgument("weft.moe.exchange_bytes: node_size is given without ranks; give both, or none for this job")
    if ranks is not None and (team is not None or integer(ranks, "ranks") < 1):
        raise InvalidArgument(f"weft.moe.exchange_bytes: ranks is {ranks}" + (", and a team is given; give one of both"
                              if team is not None else "; give 1 or more"))
    if node_size is not None and integer(node_size, "node_size") < 1:
        raise InvalidArgument(f"weft.moe.exchange_bytes: node_size is {node_size}; give 1 or more")
    return core.moe_memory_bytes(team, parsed(given, str(device) != "cpu").config, ranks or 0, node_size or 0)
