"""From single records to the series of a figure: which fields tell them apart, what each is called, the
median of its runs and their spread. Pure.

Records that agree in all fields are runs of one series. Fields are taken in the order of FIELDS and only
as long as they separate something, so a label has no more words than it needs.
"""
from dataclasses import dataclass

SERIES_MAX = 8  # more cannot be told apart in print

WORD_MAX = 36  # letters of one field's value in a label

FIELDS = ("library", "policy", "scope", "mode", "warmup", "pattern", "reduction", "type", "pes", "nodes", "window", "ctas",
          "threads", "machine", "version", "options")
LIBRARIES_FIRST = ("Weft", "NVSHMEM", "NCCL")
SCOPES = ("thread", "warp", "block", "grid", "stream", "graph")


@dataclass(frozen=True)
class Spread:
    """Median, smallest and largest of some runs."""

    median: float
    low: float
    high: float
    count: int


def spread_of(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return Spread(median, ordered[0], ordered[-1], len(ordered))


@dataclass(frozen=True)
class Series:
    """The records of one line of a figure. `key` holds the values of the fields that it is told by."""

    label: str
    library: str
    key: tuple
    records: tuple


def value_of(record, field):
    return record.fields.get(field)


def telling_fields(records, candidates=FIELDS):
    """Those of the candidates that separate records which the ones before them do not."""
    chosen, classes = [], 1
    for field in candidates:
        now = len({tuple(value_of(record, name) for name in (*chosen, field)) for record in records})
        if now > classes:
            chosen.append(field)
            classes = now
    return tuple(chosen)


def words_of(field, value):
    if value is None:
        return ""
    plain = {"pes": "PEs", "nodes": "nodes", "ctas": "CTAs", "threads": "threads"}
    if field in plain:
        return f"{value} {plain[field] if value != 1 else plain[field].removesuffix('s')}"
    if field == "warmup":
        return "with warm-up" if value == "on" else "without warm-up"
    return f"window {value}" if field == "window" else str(value)


def shortened(word):
    """Both ends of a word that would leave no room for the figure."""
    return word if len(word) <= WORD_MAX else f"{word[:WORD_MAX - 12]}…{word[-11:]}"


def label_of(fields, key):
    return ", ".join(shortened(word) for field, value in zip(fields, key) if (word := words_of(field, value)))


def rank(value, order):
    return (order.index(value), "") if value in order else (len(order), "")


def sort_key(field, value):
    """Weft before its peers, scopes from small to large, numbers by size, what is absent first."""
    if field == "library":
        return (*rank(value, LIBRARIES_FIRST), str(value))
    if field == "scope":
        return (*rank(value, SCOPES), str(value))
    if isinstance(value, (int, float)):
        return (0, "", f"{float(value):030.6f}")
    return (1 if value is not None else -1, "", str(value))


def group(records, fields):
    """Series of records that agree in `fields`, in the order of sort_key."""
    classes = {}
    for record in records:
        classes.setdefault(tuple(value_of(record, field) for field in fields), []).append(record)
    ordered = sorted(classes, key=lambda key: [sort_key(*pair) for pair in zip(fields, key)])
    return [Series(label_of(fields, key), value_of(classes[key][0], "library") or "", key, tuple(classes[key]))
            for key in ordered]


def split(records, fields, most=SERIES_MAX):
    """[(what the figure's name adds, its series)]: one figure, or several where one would have more series than `most`.
    Then the last of the fields becomes part of the name instead."""
    series = group(records, fields)
    if len(series) <= most:
        return [("", series)]
    figures = []
    for part in group(records, fields[-1:]):
        inner = split(part.records, fields[:-1], most)
        figures += [(f"{part.label}-{more}".strip("-"), found) for more, found in inner]
    return figures


def merged_fields(series):
    """Fields in which the records of one series differ although they are taken as runs of it."""
    return sorted({field for each in series for field in telling_fields(each.records)}, key=FIELDS.index)
