"""Which figures a set of records can give: their names, what each shows, and how it is drawn. Pure until a
figure is drawn: only then is matplotlib imported.

A name is KIND-BENCHMARK, with the value of a field behind it where one figure would have too many series.
"""
import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from .records import METRICS, Comparison, Event, NicLoads, PeerMatrix, Point, Step
from .series import FIELDS, merged_fields, split, telling_fields

NIC_ROWS_MAX = 5
MATRICES_MAX = 3


@dataclass(frozen=True)
class Choice:
    """Which records count (all of `where` say so), which fields make series, () meaning those that differ, and
    the words that stand for a label in figures."""

    where: tuple[Callable[[object], bool], ...] = ()
    fields: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    def of(self, records):
        return [record for record in records if all(test(record) for test in self.where)]

    def named(self, series):
        return [replace(each, label=self.labels.get(each.label, each.label)) for each in series]


@dataclass(frozen=True)
class Look:
    """What a caller may choose; None leaves it to the kind of figure."""

    width: float | None = None
    height: float | None = None


@dataclass(frozen=True)
class Planned:
    """A figure that can be drawn."""

    name: str
    says: str
    note: str  # what a reader must be told; mostly empty
    draw: Callable[[Look], object]


def drawing():
    """The modules that draw."""
    from . import drawing as modules
    return modules


def name_of(*parts):
    """Words of a file name: letters, digits, - and _."""
    return "-".join(re.sub(r"[^\w]+", "-", part).strip("-") for part in parts if part)


def plural(count, word):
    return f"{count} {word}{'' if count == 1 else 's'}"


def note_of(series):
    fields = merged_fields(series)
    return f"records that differ in {', '.join(fields)} are taken as runs of one series" if fields else ""


def class_of(records, key):
    """{key: records} in the order of the keys."""
    found = {}
    for record in records:
        found.setdefault(key(record), []).append(record)
    return dict(sorted(found.items(), key=lambda item: str(item[0])))


def planned(name, records, choice, most, plan):
    """One Planned or several; `plan(series)` gives what a figure says and its function of a Look."""
    for more, series in split(records, choice.fields or telling_fields(records), most):
        says, draw = plan(choice.named(series))
        shown = [each.label for each in series if each.label]
        says = f"{says}: {' | '.join(shown)}" if shown else says
        yield Planned(name_of(name, more), says, note_of(series), draw)


def plan_sizes(records, choice):
    def figure_of(point):
        return point.metric, point.benchmark, "" if point.size else "without-size"

    # What has no size stands alone where others of its benchmark have one.
    groups = class_of(records, figure_of)
    for (metric, benchmark, alone), points in groups.items():
        alone = alone if (metric, benchmark, "") in groups else ""
        def plan(series, metric=metric):
            sizes = {point.size for each in series for point in each.records}
            over = f"over {plural(len(sizes), 'size')}" if len(sizes) > 1 else "at one size"
            return f"{METRICS[metric]} {over}", lambda look: drawing().draw_sizes.draw(series, metric, look)

        yield from planned(name_of(metric, benchmark, alone), points, choice, most=8, plan=plan)


def plan_nics(records, choice):
    for benchmark, loads in class_of(records, lambda each: each.benchmark).items():
        def plan(series):
            return "bytes of each NIC, TX and RX", lambda look: drawing().draw_nics.draw(series, look)

        yield from planned(f"nics-{benchmark}", loads, choice, most=NIC_ROWS_MAX, plan=plan)


def plan_time(records, choice):
    events = [each for each in records if isinstance(each, Event)]
    steps_alone = [each for each in records if isinstance(each, Step)]
    for benchmark, steps in class_of(steps_alone, lambda each: each.benchmark).items():
        def plan(series):
            return "throughput over time", lambda look: drawing().draw_time.draw(series, events, look)

        yield from planned(f"time-{benchmark}", steps, choice, most=6, plan=plan)


def plan_peers(records, choice):
    last_of_job = {each.grows_in: each for each in records if each.grows_in}
    records = [each for each in records if not each.grows_in] + list(last_of_job.values())
    groups = class_of(records, lambda each: (each.benchmark, len(each.matrix), each.unit))
    for (benchmark, count, _), matrices in groups.items():
        def plan(series, count=count):
            return f"who sends to whom, {plural(count, 'PE')}", lambda look: drawing().draw_peers.draw(series, look)

        several = sum(1 for key in groups if key[0] == benchmark) > 1
        name = f"peers-{benchmark}" + (f"-{count}-PEs" if several else "")
        yield from planned(name, matrices, choice, most=MATRICES_MAX, plan=plan)


def plan_compared(records, choice):
    """Of a row that was measured several times the last counts. Parts that are told by size make lines over size."""
    for (row, metric), found in class_of(latest(records), lambda each: (each.benchmark, each.metric)).items():
        lines = class_of([each for each in found if size_of(each.what)], lambda each: size_of(each.what)[0])
        lines = {what: each for what, each in lines.items() if len(each) > 1}
        for what, each in lines.items():
            yield from plan_sizes([point for one in each for point in points_of(one, f"{row}-{what}")], choice)
        left = [each for each in found if not (size_of(each.what) and size_of(each.what)[0] in lines)]
        name = name_of("compared", row, metric if metric != "latency" else "")
        if left:
            yield Planned(name, f"{METRICS[metric]}, both sides of scripts/bench {row}", "",
                          lambda look, left=left: drawing().draw_compared.draw(left, look, choice.labels))


def latest(comparisons):
    """Those of each row's last measurement: its results are written within moments of each other."""
    for found in class_of(comparisons, lambda each: each.benchmark).values():
        last = max(moment(each.date) for each in found)
        yield from (each for each in found if last - moment(each.date) <= 60)


def moment(date):
    try:
        return datetime.datetime.fromisoformat(date).timestamp()
    except ValueError:
        return 0.0


def size_of(what):
    """'put, 4 KiB' -> ('put', 4096); None where no size stands at the end."""
    found = re.fullmatch(r"(?:(.*), )?(\d+) (B|KiB|MiB|GiB)", what)
    return found and (found.group(1) or "", int(found.group(2)) << {"B": 0, "KiB": 10, "MiB": 20, "GiB": 30}[found.group(3)])


def points_of(comparison, benchmark):
    """Both sides as series of their own; each sample is a run."""
    size = size_of(comparison.what)[1]
    return [Point(benchmark, comparison.metric, size, value, {"library": library})
            for library, values in (("Weft", comparison.ours), ("compared with", comparison.theirs)) for value in values]


PLANS = {Point: plan_sizes, NicLoads: plan_nics, (Step, Event): plan_time, PeerMatrix: plan_peers, Comparison: plan_compared}


def figures_of(records, choice=Choice()):
    """Every figure that the chosen records can give, in the order of its names."""
    chosen = choice.of(records)
    figures = [figure for kind, plan in PLANS.items()
               for figure in plan([record for record in chosen if isinstance(record, kind)], choice)]
    return sorted(figures, key=lambda figure: figure.name)


def where(text):
    """The test that FIELD=VALUE,VALUE or FIELD!=VALUE,VALUE stands for. Raises ValueError with a sentence."""
    found = re.fullmatch(r"(\w+)(!?=)(.*)", text)
    if not found:
        raise ValueError(f"'{text}' is not FIELD=VALUE; more values are joined by commas, FIELD!=VALUE leaves out")
    name, sign, values = found.group(1), found.group(2), {value.lower() for value in found.group(3).split(",")}
    if name not in (*FIELDS, "benchmark"):
        raise ValueError(f"there is no field {name}; there are: benchmark, {', '.join(FIELDS)}")

    def has(record):
        value = record.benchmark if name == "benchmark" else record.fields.get(name)
        return (str(value).lower() in values) == (sign == "=")

    return has
