"""moe_row_per.py FIRST COUNT: a PE that runs random cases (moe_reference.py) on two exchanges, with a row for each rank and with
one for each node, and compares what they give."""
import sys

import numpy
import weft
from weft import moe

import moe_reference as reference
from moe_cases import check_rows, expert_outputs


def shown(result):
    """All that a caller may look at, as bytes."""
    parts = [result.counts.tobytes(), result.offsets.tobytes()]
    for name in ("x", "scales", "row_scales", "weights", "ids"):
        array = getattr(result, name)
        if array is not None:
            parts += [array[at].tobytes() for at in rows_of(result)]
    return parts


def rows_of(result):
    """Indices of the rows that came."""
    for part, count in enumerate(result.counts.tolist()):
        for position in range(count):
            yield int(result.offsets[part]) + position if result.weights.ndim == 1 or is_flat(result) else (part, position)


def is_flat(result):
    """Whether rows have one index."""
    return result.ids is not None and result.ids.ndim == 2


def main(first, count):
    with weft.init() as job:
        for seed in range(first, first + count):
            case = reference.random_case(seed, job.pe_count)
            sources = [case.tokens_of(source) for source in range(case.ranks)]
            x, _, scales, ids, weights = sources[job.pe]
            found = []
            for row_per in ("rank", "node"):
                exchange = moe.Exchange(row_per=row_per, **case.arguments())
                result = exchange.dispatch(x, ids, weights if case.weights_at == "dispatch" else None, scales)
                check_rows(case, job.pe, sources, result)
                y = exchange.combine(expert_outputs(case, job.pe, result), result.plan,
                                     weights if case.weights_at == "combine" else None, precision=case.precision,
                                     weighted=case.weights_at != "none")
                found.append((shown(result), y))
                del result
                exchange.close()
            (rows, y), (node_rows, node_y) = found
            assert rows == node_rows, case
            if case.precision in ("reduced", "fp8"):
                wanted = reference.decode(y, case.output)
                error = abs(reference.decode(node_y, case.output) - wanted)
                scale = abs(wanted).max(initial=0) * case.topk + 1e-3
                epsilon = 2.0**-4 if case.precision == "fp8" else reference.EPSILON[case.output]
                assert (error <= 4 * epsilon * scale + 1e-6 * scale).all(), (case, error.max())
            else:
                assert y.tobytes() == node_y.tobytes(), case
        print(f"PE {job.pe}: {count} cases")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
