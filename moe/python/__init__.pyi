"""Types of weft.moe; the texts stand where the names are defined."""

from collections.abc import Callable
from typing import Any, Literal

import numpy

from . import deep_ep as deep_ep
from .._weft import Team

Array = Any  # a numpy array or a CPU tensor; results are of the kind that was given
Phase = Literal["both", "send", "recv"]
Payload = Literal["bfloat16", "float16", "float32", "float64", "fp8_e4m3", "fp8_e5m2", "nvfp4"]
Output = Literal["bfloat16", "float16", "float32", "float64"]
Scales = Literal["none", "float32", "ue8m0", "nvfp4"]
Layout = Literal["rank_major", "rank_compact", "expert_padded", "expert_compact"]

class Plan:
    topk_ids: numpy.ndarray
    topk_weights: numpy.ndarray | None
    @property
    def tokens(self) -> int: ...

class Result:
    x: Array
    scales: Array | None
    row_scales: Array | None
    weights: Array
    ids: Array | None
    counts: Array
    offsets: Array
    plan: Plan
    outputs: Array | None
    def trimmed(self) -> Result: ...

class Exchange:
    max_tokens: int
    hidden: int
    experts: int
    topk: int
    payload: str
    output: str
    scales: str
    layout: str
    outputs_in_place: bool
    scales_by_column: bool
    has_part: bool
    rank: int
    ranks: int
    first_expert: int
    local_experts: int
    def __init__(self, team: Team | None = None, *, max_tokens: int, hidden: int, experts: int, topk: int,
                 payload: Payload | Any = "bfloat16", scales: Scales | None = None, output: Output | None = None,
                 layout: Layout = "expert_padded", alignment: int = 1, timeout: float | None = None,
                 on_timeout: Literal["error", "mask"] = "error", device: Any = "cpu", blocks: int = 0,
                 row_per: Literal["auto", "rank", "node"] = "auto",
                 outputs_in_place: bool = False, scales_by_column: bool = False) -> None: ...
    def dispatch(self, x: Array | None = None, topk_ids: Array | None = None, topk_weights: Array | None = None,
                 scales: Array | None = None, *, plan: Plan | None = None, bound: int | Array | None = None,
                 phase: Phase = "both") -> Result | None: ...
    def combine(self, expert_out: Array | None = None, plan: Plan | None = None, topk_weights: Array | None = None, *,
                out: Array | None = None, precision: Literal["reduced", "exact", "lanes", "fp8"] = "reduced",
                weighted: bool = True, phase: Phase = "both") -> Array | None: ...
    def sources(self, plan: Plan) -> tuple[Array, Array]: ...
    def set_blocks(self, blocks: int) -> None: ...
    def leave_out(self, rank: int) -> None: ...
    def rejoin(self) -> None: ...
    def check(self) -> None: ...
    @property
    def active_mask(self) -> numpy.ndarray: ...
    def close(self) -> None: ...

def exchange_bytes(team: Team | None = None, *, ranks: int | None = None, node_size: int | None = None, max_tokens: int, hidden: int,
                   experts: int, topk: int, payload: Payload | Any = "bfloat16", scales: Scales | None = None,
                   output: Output | None = None, layout: Layout = "expert_padded", alignment: int = 1,
                   timeout: float | None = None, on_timeout: Literal["error", "mask"] = "error", device: Any = "cpu",
                   blocks: int = 0, row_per: Literal["auto", "rank", "node"] = "auto",
                   outputs_in_place: bool = False, scales_by_column: bool = False) -> int: ...

class Dispatcher:  # a torch.nn.Module
    exchange: Exchange
    def __init__(self, exchange: Exchange) -> None: ...
    def forward(self, x: Any, topk_ids: Any, topk_weights: Any, experts: Callable[[Any, Any, Any], Any]) -> Any: ...
    def __call__(self, x: Any, topk_ids: Any, topk_weights: Any, experts: Callable[[Any, Any, Any], Any]) -> Any: ...
