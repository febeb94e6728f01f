"""Reading: every line becomes records or is named with its number, whatever is in it."""
import json
import random

import pytest
from plot_cli import GPU_FILES, TRAFFIC_FILE, plot, row, write
from weft_plot.lines import ranges, read

NICS = [{"node": 0, "nic": "nic0", "tx_bytes_library": 5, "rx_bytes_library": 7, "tx_bytes_kernel": None, "rx_bytes_kernel": None}]
BROKEN = {
    "": "empty",
    "   ": "empty",
    '{"kind": "row", "size"': "not JSON",
    "[" * 100000: "not JSON|nested too deeply",
    "7": "no object",
    "{}": "without keys",
    '{"a": 1, "b\\u001b[31m": 2}': "no form that weft-plot knows, its keys begin with a, b",
    json.dumps(row(size="x")): "'size' is not a number",
    json.dumps(row(value=None)): "'value' is not a number",
    json.dumps(row(value=True)): "'value' is not a number",
    json.dumps(row(value=0)): "'value' is 0",
    json.dumps(row(value=-1)): "'value' is negative",
    json.dumps(row()).replace("2.5", "NaN"): "'value' is not a number",
    json.dumps(row()).replace("2.5", "1e999"): "'value' is not a number",
    json.dumps(row()).replace("2.5", "1" + "0" * 400): "'value' is not a number",
    json.dumps(row(unit="furlongs")): "the unit 'furlongs' is not known",
    json.dumps(row(unit=["us"])): "'unit' is not a text",
    json.dumps({"kind": "balance", "nics": []}): "'nics' is empty",
    json.dumps({"kind": "balance", "nics": [7]}): "no NIC",
    json.dumps({"kind": "balance", "nics": [{"node": 0}]}): "'tx_bytes_library' is missing",
    json.dumps({"matrix": [[1, 2], [3]]}): "not square",
    json.dumps({"matrix": [[1, "2"], [3, 4]]}): "no number of bytes",
    json.dumps({"matrix": [[1]], "unit": "furlongs"}): "neither bytes nor bytes/s",
    json.dumps({"pes": [{"job": "j", "pe": 0, "pe_count": 1, "peers": [{"peer": 5}]}]}): "not in the job",
    json.dumps(row(table="cold_start", times=[1, 0])): "no time",
}


@pytest.mark.parametrize("line", BROKEN, ids=lambda line: BROKEN[line].replace("'", "")[:40])
def test_a_line_that_cannot_be_used_is_named_and_the_others_are_used(tmp_path, line):
    contents = read(write(tmp_path / "f.jsonl", [row(), line, row(size=16)]))
    assert [record.size for record in contents.records] == [8, 16]
    assert [problem.line for problem in contents.problems] == [2]
    assert any(words in contents.problems[0].says for words in BROKEN[line].split("|"))
    assert "line 2 (" in contents.message() and "2 of 3 lines are used" in contents.message()
    assert "\x1b" not in contents.message()


def test_the_same_reason_is_said_once_for_all_its_lines():
    assert ranges([4]) == "line 4"
    assert ranges([1, 2, 3, 7, 9, 10]) == "lines 1-3, 7, 9-10"


def test_an_empty_file_is_said_to_be_empty(tmp_path):
    done = plot(write(tmp_path / "f.jsonl", []), "-o", tmp_path / "out")
    assert done.status == 1
    assert "f.jsonl is empty" in done.errors
    assert not (tmp_path / "out").exists()


def test_bytes_that_are_no_text_are_a_broken_line(tmp_path):
    path = tmp_path / "f.jsonl"
    path.write_bytes(b"\x89PNG\r\n\x00\xff\xfe\n" + json.dumps(row()).encode() + b"\n")
    contents = read(path)
    assert len(contents.records) == 1
    assert contents.problems


def test_a_file_of_one_json_value_over_many_lines_is_read(tmp_path):
    path = tmp_path / "f.json"
    path.write_text(json.dumps([row(), row(size=16)], indent=2))
    assert [record.size for record in read(path).records] == [8, 16]


def test_units_become_one(tmp_path):
    lines = [row(value=value, unit=unit) for value, unit in [(2500, "ns"), (2.5, "us"), (2.5, "µs"), (0.0025, "ms")]]
    assert [round(record.value, 9) for record in read(write(tmp_path / "f", lines)).records] == [2.5] * 4


def test_nics_are_counted_by_the_kernel_only_where_it_knows_all(tmp_path):
    known = [dict(NICS[0], tx_bytes_kernel=50, rx_bytes_kernel=70)]
    lines = [{"kind": "balance", "nics": nics} for nics in (NICS, known, NICS + known)]
    loads = read(write(tmp_path / "f", lines)).records
    assert [each.source for each in loads] == ["library", "kernel", "library"]
    assert (loads[0].nics[0].tx_bytes, loads[1].nics[0].rx_bytes) == (5, 70)


def test_the_warm_up_is_read_from_the_command_where_a_line_has_no_field(tmp_path):
    lines = [row(warmup=True), row(command="weft-perf put_bw --warmup off"), row(command="weft-perf put_bw --warmup=on"), row()]
    fields = [record.fields.get("warmup") for record in read(write(tmp_path / "f", lines)).records]
    assert fields == ["on", "off", "on", None]


def test_a_frame_of_weft_top_says_who_sent_to_whom(tmp_path):
    pes = [{"job": "j", "pe": 0, "pe_count": 2, "policy": "balanced", "peers": [{"peer": 1, "rail": rail, "put_bytes": 10, "get_bytes": 3}
                                                                              for rail in range(2)]}]
    (matrix,) = read(write(tmp_path / "f", [{"version": 1, "nics": [], "pes": pes}])).records
    assert matrix.matrix == ((0, 20), (6, 0))
    assert matrix.fields["policy"] == "balanced"


def garbled(text, chance):
    """The line with a few of its values, keys or characters exchanged."""
    kind = chance.randrange(4)
    if kind == 0:
        place = chance.randrange(len(text))
        return text[:place] + chance.choice('{}[]",:0-') + text[place + 1:]
    if kind == 1:
        return text[:chance.randrange(len(text))]
    line = json.loads(text)
    key = chance.choice(list(line))
    if kind == 2:
        del line[key]
    else:
        line[key] = chance.choice([None, [], {}, "", "x", -1, 0, 1e300, True, [[]], [None], {"matrix": [[1]]}])
    return json.dumps(line)


@pytest.mark.parametrize("seed", range(4))
def test_garbled_lines_are_all_accounted_for(tmp_path, seed):
    chance = random.Random(seed)
    texts = [text for path in (*GPU_FILES, TRAFFIC_FILE) for text in path.read_text().splitlines()]
    lines = [garbled(chance.choice(texts), chance) for _ in range(400)]
    path = tmp_path / "f.jsonl"
    path.write_text("\n".join(lines) + "\n")
    contents = read(path)
    assert contents.line_count == len(lines)
    named = {problem.line for problem in contents.problems}
    assert len(named) == len(contents.problems)
    done = plot(path, "--list")
    assert done.status == 1
    assert "left out line" in done.errors
