"""moe_cases.py FIRST COUNT REPEATS: a PE that runs random cases (moe_reference.py) and compares with the reference."""
import sys
import time

import numpy
import weft
from weft import moe

import moe_reference as reference


def check_rows(case, rank, sources, result):
    """Every received row, bit by bit and in its place, unless the exchange quantised it."""
    width = case.max_tokens * case.ranks if case.layout == "expert_padded" else None
    if case.layout.startswith("rank"):
        check_rows_by_rank(case, rank, sources, result)
        return
    scales = result.scales
    if scales is not None and scales.dtype == "int32":  # four powers each, by column
        scales = numpy.ascontiguousarray(scales).view("uint8")
    expected = reference.expert_rows(case, rank, sources)
    assert result.counts.tolist() == [len(rows) for rows in expected]
    offset = 0
    for expert, rows in enumerate(expected):
        begin = expert * width if width else offset
        assert result.offsets[expert] == begin
        for position, (source, token, weight) in enumerate(rows):
            at = (expert, position) if width else begin + position
            check_row(case, sources[source], token, (result.x[at], scales, result.row_scales, at))
            if sources[source][4] is not None and case.weights_at == "dispatch":
                assert result.weights[at] == weight
        offset += -(-len(rows) // case.alignment) * case.alignment
        if not width:
            assert not result.x[begin + len(rows):offset].view("uint8").any(), "gaps are zeros"
    assert result.offsets[-1] == (len(expected) * width if width else offset)


def check_rows_by_rank(case, rank, sources, result):
    counts = [0] * case.ranks
    x, ids = result.x, result.ids
    for source, token, lanes in reference.rows_at(case, rank, sources):
        slot = counts[source]
        at = (source, slot) if case.layout == "rank_major" else sum(counts)
        check_row(case, sources[source], token, (x[at], result.scales, result.row_scales, at))
        wanted = numpy.full(case.topk, -1)
        for lane, expert in lanes:
            wanted[lane] = expert
        assert (ids[at] == wanted).all(), (ids[at], wanted)
        counts[source] += 1
    assert result.counts.tolist() == counts
    if case.layout == "rank_major":
        for source in range(case.ranks):
            assert (ids[source, counts[source]:] == -1).all()
    else:
        assert len(x) == sum(counts)


def check_sources(case, rank, sources, found):
    """`found`: for each row, the rank and the token that it came from."""
    ranks, tokens = numpy.full(found[0].shape, -1), numpy.full(found[0].shape, -1)
    if case.layout.startswith("rank"):
        places, slots = {}, [0] * case.ranks
        for row, (source, token, _) in enumerate(reference.rows_at(case, rank, sources)):
            places[(source, slots[source]) if case.layout == "rank_major" else row] = source, token
            slots[source] += 1
    else:
        places, offset = {}, 0
        for expert, rows in enumerate(reference.expert_rows(case, rank, sources)):
            for position, (source, token, _) in enumerate(rows):
                places[(expert, position) if case.layout == "expert_padded" else offset + position] = source, token
            offset += -(-len(rows) // case.alignment) * case.alignment
    for place, (source, token) in places.items():
        ranks[place], tokens[place] = source, token
    assert (found[0] == ranks).all() and (found[1] == tokens).all()


def check_row(case, source, token, received):
    x, values, scales, _, _ = source
    row, row_scales, nvfp4_scales, at = received
    if not case.quantizes:
        assert (row.view("uint8") == x[token].view("uint8")).all()
        if case.scales == "nvfp4":
            blocks = case.hidden // 16
            assert (row_scales[at] == scales[token, :blocks]).all()
            assert nvfp4_scales[at].tobytes() == scales[token, -4:].tobytes()
        elif scales is not None:
            assert (row_scales[at] == scales[token]).all()
        return
    wanted = values[token]
    if case.payload == "nvfp4":
        codes = numpy.stack([row & 15, row >> 4], axis=1).reshape(-1)
        scale = numpy.repeat(reference.decode(row_scales[at], "fp8_e4m3") * float(nvfp4_scales[at]), 16)
        assert (abs(reference.decode(codes, "e2m1") * scale - wanted) <= 1.4 * scale + 1e-12).all()
        return
    blocks = -(-case.hidden // 128)
    scale = {"none": lambda: numpy.ones(blocks), "float32": lambda: row_scales[at].astype("float64"),
             "ue8m0": lambda: 2.0**(row_scales[at].astype("float64") - 127)}[case.scales]()
    scale = numpy.repeat(scale, 128)[:case.hidden]
    step, reach, least = (2.0**-4, 448, 2.0**-9) if case.payload == "fp8_e4m3" else (2.0**-3, 57344, 2.0**-16)
    found = reference.decode(row, case.payload) * scale
    limit = numpy.clip(wanted, -reach * scale, reach * scale)
    assert (abs(found - limit) <= abs(limit) * step * 1.01 + scale * least).all()


def expert_outputs(case, rank, result):
    """What this rank's experts make of their rows: any function of the expert and the bits of its row."""
    shape = (*result.x.shape[:-1], case.hidden)
    seeds = result.x.view("uint8")[..., :4].astype("float64").sum(-1, keepdims=True)
    columns = numpy.arange(case.hidden) % 13 - 6.0
    out = (seeds % 17 - 8) * columns / 32
    if case.layout.startswith("expert"):
        number = numpy.zeros(shape[:-1] + (1,))
        for expert in range(len(result.counts)):
            if case.layout == "expert_padded":
                number[expert] = expert + 1 + rank
            else:
                number[result.offsets[expert]:result.offsets[expert + 1]] = expert + 1 + rank
        out = out * number
    return reference.encode(out.reshape(shape), case.output)


def expected_sums(case, rank, sources, seeds_of):
    """float64 [tokens, hidden] (or [tokens, topk, hidden]), and the sum of magnitudes."""
    x, _, _, ids, weights = sources[rank]
    tokens = len(x)
    lanes = numpy.zeros((tokens, case.topk, case.hidden))
    columns = numpy.arange(case.hidden) % 13 - 6.0
    weighted = numpy.zeros((tokens, case.hidden))
    size = numpy.zeros((tokens, case.hidden))
    for token in range(tokens):
        seen = set()
        for lane in range(case.topk):
            expert = int(ids[token, lane])
            if expert < 0:
                continue
            owner = case.owner(expert)
            key = owner if case.layout.startswith("rank") else expert
            number = 1 if case.layout.startswith("rank") else expert - case.experts_of(owner).start + 1 + owner
            row = (seeds_of(token) % 17 - 8) * columns / 32 * number
            row = reference.decode(reference.encode(row, case.output), case.output)
            lanes[token, lane] = row
            weight = float(weights[token, lane]) if case.weights_at != "none" else float(key not in seen)
            seen.add(key)
            weighted[token] += weight * row
            size[token] += abs(weight * row)
    return (lanes, abs(lanes)) if case.precision == "lanes" else (weighted, size)


def fp8_limit(case, size):
    """How far a sum may be off whose parts, one of each rank, travel as e4m3 with a scale for each 128 values: half a unit in the
    last of 3 bits of each part, and half of the least step of its block. `size`: of the terms, [tokens, hidden]."""
    blocks = numpy.arange(0, case.hidden, 128)
    largest = numpy.maximum.reduceat(size, blocks, axis=1) if len(size) else size
    steps = numpy.repeat(largest, 128, axis=1)[:, :case.hidden] / 448 * 2.0**-10
    return 1.02 * (size * 2.0**-4 + min(case.topk, case.ranks) * steps)


def run_case(case, exchange, rank, jitter):
    """One dispatch and combine; returns what came out, for comparison with a repetition."""
    sources = [case.tokens_of(source) for source in range(case.ranks)]
    x, _, scales, ids, weights = sources[rank]
    time.sleep(jitter())
    result = exchange.dispatch(x, ids, weights if case.weights_at == "dispatch" else None, scales)
    check_rows(case, rank, sources, result)
    check_sources(case, rank, sources, exchange.sources(result.plan))
    out = expert_outputs(case, rank, result)
    if result.outputs is not None:
        result.outputs[...] = out
        out = result.outputs
    time.sleep(jitter())
    y = exchange.combine(out, result.plan, weights if case.weights_at == "combine" else None, precision=case.precision,
                         weighted=case.weights_at != "none")
    if not case.quantizes:
        seeds = x.view("uint8")[:, :4].astype("float64").sum(-1)
        wanted, size = expected_sums(case, rank, sources, lambda token: seeds[token])
        error = abs(reference.decode(y, case.output) - wanted)
        limit = size * reference.EPSILON[case.output] * (2 + case.topk / 8) + (1e-7 if case.output != "float64" else 1e-7) * (size + 1e-3)
        if case.precision == "fp8":
            limit = limit + fp8_limit(case, size)
        assert y.shape == wanted.shape and (error <= limit).all(), (case, error.max())
    return y.tobytes()


def main(first, count, repeats):
    with weft.init() as job:
        rng = numpy.random.default_rng(job.pe)
        jitter = (lambda: rng.random() * 0.003 * (rng.random() < 0.5)) if repeats > 1 else (lambda: 0)
        for seed in range(first, first + count):
            case = reference.random_case(seed, job.pe_count)
            try:
                exchange = moe.Exchange(**case.arguments())
                outputs = {run_case(case, exchange, job.pe, jitter) for _ in range(repeats)}
                assert len(outputs) == 1, f"{len(outputs)} different results in {repeats} runs"
                exchange.close()
            except BaseException:
                sys.stderr.write(f"PE {job.pe}: {case}\n")
                raise
        print(f"PE {job.pe}: {count} cases")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
