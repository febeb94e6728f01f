"""A naive mixture of experts, in loops and float64, and the random cases that it is compared on."""
import dataclasses
import random

import numpy

VALUES = {"bfloat16": 2, "float16": 2, "float32": 4, "float64": 8, "fp8_e4m3": 1, "fp8_e5m2": 1, "nvfp4": 0.5}
RAW = {"bfloat16": "uint16", "fp8_e4m3": "uint8", "fp8_e5m2": "uint8", "nvfp4": "uint8"}
EPSILON = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-23, "float64": 2.0**-50}


def to_bfloat16(values):
    bits = numpy.asarray(values, "float32").view("uint32").astype("uint64")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("uint16")


def from_bfloat16(codes):
    return (codes.astype("uint32") << 16).view("float32").astype("float64")


def encode(values, name):
    """float64 to an array of `name` (bfloat16 as uint16)."""
    return to_bfloat16(values) if name == "bfloat16" else numpy.asarray(values).astype(name)


def decode(codes, name):
    """float64 of an array of `name`; fp8 by its definition."""
    if name == "bfloat16":
        return from_bfloat16(codes)
    if name not in RAW:
        return codes.astype("float64")
    mantissa, least = {"fp8_e4m3": (3, -6), "fp8_e5m2": (2, -14), "e2m1": (1, 0)}[name]
    bits = 3 if name == "e2m1" else 7
    sign, code = codes >> bits & 1, (codes & ((1 << bits) - 1)).astype("int64")
    field, fraction = code >> mantissa, code & ((1 << mantissa) - 1)
    value = numpy.where(field == 0, fraction * 2.0**(least - mantissa),
                        (fraction + (1 << mantissa)) * 2.0**(least - mantissa) * 2.0**(field - 1.0))
    return numpy.where(sign == 1, -value, value)


RAW["e2m1"] = "uint8"


@dataclasses.dataclass
class Case:
    """What all PEs agree on; tokens, ids and weights of each PE follow from the seed."""
    seed: int
    ranks: int
    max_tokens: int
    hidden: int
    experts: int
    topk: int
    payload: str
    scales: str
    output: str
    layout: str
    alignment: int
    routing: str
    weights_at: str
    precision: str
    quantizes: bool  # the exchange turns wider rows into fp8 or nvfp4

    def arguments(self):
        given = {name: getattr(self, name) for name in (
            "max_tokens", "hidden", "experts", "topk", "payload", "scales", "output", "layout", "alignment")}
        words = -(-self.hidden // 128) * {"float32": 4, "ue8m0": 1}.get(self.scales, 0)
        by_column = self.layout == "expert_padded" and words > 0 and words % 4 == 0 and self.topk % 2 == 0
        return given | {"outputs_in_place": self.layout.startswith("rank") and self.topk % 2 == 0, "scales_by_column": by_column}

    def owner(self, expert):
        for rank in range(self.ranks):
            if expert in self.experts_of(rank):
                return rank
        raise AssertionError(expert)

    def experts_of(self, rank):
        share, longer = divmod(self.experts, self.ranks)
        first = rank * share + min(rank, longer)
        return range(first, first + share + (rank < longer))

    def tokens_of(self, rank):
        """x in the types that dispatch takes, its float64 values or None, scales, ids, weights."""
        rng = numpy.random.default_rng([self.seed, rank])
        count = int(rng.choice([0, 1, self.max_tokens, rng.integers(0, self.max_tokens + 1)], p=[0.1, 0.1, 0.3, 0.5]))
        values = rng.standard_normal((count, self.hidden)) * 2.0**rng.integers(-4, 5, (count, 1))
        ids = self._ids(rng, count)
        weights = rng.random((count, self.topk)).astype("float32")
        scales = None
        if self.quantizes:
            name = ["bfloat16", "float16", "float32"][self.seed % 3]
            x = encode(values, name)
            values = decode(x, name)
        elif self.payload in ("fp8_e4m3", "fp8_e5m2", "nvfp4"):
            x = rng.integers(0, 0x78, (count, int(self.hidden * VALUES[self.payload]))).astype("uint8")
            values, scales = None, self._scales(rng, count)
        else:
            x = encode(values, self.payload)
            values = decode(x, self.payload)
        return x, values, scales, ids, weights

    def scale_columns(self):
        blocks = -(-self.hidden // 128)
        return {"none": 0, "float32": blocks, "ue8m0": blocks, "nvfp4": -(-(self.hidden // 16) // 4) * 4 + 4}[self.scales]

    def _scales(self, rng, count):
        columns = self.scale_columns()
        if self.scales == "none":
            return None
        if self.scales == "float32":
            return rng.random((count, columns)).astype("float32")
        return rng.integers(1, 255, (count, columns)).astype("uint8")

    def _ids(self, rng, count):
        shape = (count, self.topk)
        if self.routing == "one":
            return numpy.full(shape, self.seed % self.experts)
        if self.routing == "none":
            return numpy.full(shape, -1)
        if self.routing == "zipf":
            chances = 1 / numpy.arange(1, self.experts + 1)
            ids = rng.choice(self.experts, shape, p=chances / chances.sum())
        else:
            ids = rng.integers(0, self.experts, shape)
        return numpy.where(rng.random(shape) < 0.2, -1, ids) if self.routing == "holes" else ids


def random_case(seed, ranks):
    rng = random.Random(seed)
    payload = rng.choice(list(VALUES))
    is_small = payload in RAW and payload != "bfloat16"
    unit = 256 if payload == "nvfp4" else 128
    hidden = rng.choice([int(16 / VALUES[payload]), int(16 / VALUES[payload]) * rng.randint(1, 20), unit * rng.randint(1, 8), 7168])
    layout = rng.choice(["rank_major", "rank_compact", "expert_padded", "expert_compact", "expert_compact"])
    by_rank = layout.startswith("rank")
    small = hidden > 2048
    scales = {"nvfp4": "nvfp4"}.get(payload, rng.choice(["none", "float32", "ue8m0"]) if is_small else "none")
    output = rng.choice(["bfloat16", "float16", "float32"]) if is_small else payload
    case = Case(
        seed=seed, ranks=ranks, max_tokens=rng.choice([1, 7, 40] if small else [1, 7, 31, 32, 33, 64, 200]), hidden=hidden,
        experts=rng.choice([ranks, ranks + 1, rng.randint(ranks, 40), 256 if not small else 64, rng.randint(ranks, 384 if not small else 90)]),
        topk=rng.choice([1, 2, 8, rng.randint(1, 16)]), payload=payload, scales=scales, output=output, layout=layout,
        alignment=rng.choice([1, 4, 16, 128]), routing=rng.choice(["uniform", "uniform", "holes", "zipf", "one", "none"]),
        weights_at="none" if by_rank else rng.choice(["dispatch", "combine", "none"]),
        precision="reduced" if by_rank else rng.choice(["reduced", "exact", "lanes"]),
        quantizes=is_small and (hidden % 16 == 0) and rng.random() < 0.5)
    if case.precision == "reduced" and seed % 3 == 0 and hidden % 16 == 0 and output != "float64":
        case.precision = "fp8"
    if layout == "expert_padded" and case.experts * case.max_tokens * case.hidden > 2_000_000:
        case.layout = "expert_compact"  # the test would touch all rows that padding has room for
    return case


def rows_at(case, rank, sources):
    """The rows that arrive at `rank`: (source, token, [(lane, local expert)]) by source, then token."""
    mine = case.experts_of(rank)
    for source, (_, _, _, ids, _) in enumerate(sources):
        for token, row in enumerate(ids):
            lanes = [(lane, int(expert) - mine.start) for lane, expert in enumerate(row) if int(expert) in mine]
            if lanes:
                yield source, token, lanes


def expert_rows(case, rank, sources):
    """By local expert, the rows in their order: (source, token, weight)."""
    found = [[] for _ in case.experts_of(rank)]
    for source, token, lanes in rows_at(case, rank, sources):
        for expert in dict.fromkeys(expert for _, expert in lanes):
            weight = numpy.float32(0)
            for lane, other in lanes:
                if other == expert:
                    weight = numpy.float32(weight + sources[source][4][token, lane])
            found[expert].append((source, token, weight))
    return found
