"""The summary of ./test: reads `NAME STATUS SECONDS` lines from stdin and NAME.xml (JUnit) from the
folder given, prints one table, the tests that failed with the end of what they said, and, alone on the last line,
`N passed, N failed, N skipped`.

A step that failed without a failing test in its file (a build, a crash, a time limit) counts as one
failure, so that a lost result is never taken for a good one."""
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

# CTest files a test whose program is missing under "skipped"; for us that is a failure.
BROKEN_SKIPS = ("Unable to find", "Required Files Missing", "NOT_BUILT")
LINES_SHOWN = 12
COLUMNS_SHOWN = 180
FRAME = ("[==", "[--", "[ RUN", "[  PASSED", "Running main()", "Note: Google Test filter", " 1 FAILED TEST")


def outcome(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    skip = case.find("skipped")
    if skip is None:
        return "passed"
    broken = any(words in skip.get("message", "") for words in BROKEN_SKIPS)
    return "failed" if broken else "skipped"


def words_of(case):
    """The end of what a failed test said: pytest puts it into the failure, CTest beside it."""
    texts = [case.findtext("failure"), case.findtext("error"), case.findtext("system-out")]
    text = next((text for text in texts if text and text.strip()), "")
    lines = [line.rstrip() for line in text.splitlines() if line.strip() and not line.startswith(FRAME)]
    # A crash or a time limit says nothing itself; CTest's message names it.
    lines = lines[-LINES_SHOWN:] or messages_of(case)
    return "".join(f"\n    {line[:COLUMNS_SHOWN]}" for line in lines)


def messages_of(case):
    """How the runner names the failure: the signal of a crash, a time limit."""
    found = [case.find(kind) for kind in ("failure", "error")]
    return [one.get("message") for one in found if one is not None and one.get("message")]


def count(path):
    """Outcomes by kind, and the names of the tests that failed, each with its words."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    failures = []
    try:
        cases = list(ElementTree.parse(path).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        cases = []
    for case in cases:
        kind = outcome(case)
        counts[kind] += 1
        if kind == "failed":
            failures.append(f"{case.get('name')}{words_of(case)}")
    return counts, failures


def main(folder):
    total = {"passed": 0, "failed": 0, "skipped": 0}
    details = []
    print(f"\n{'step':<16}{'passed':>8}{'failed':>8}{'skipped':>9}{'time':>9}")
    for line in sys.stdin.read().splitlines():
        name, status, seconds = line.split()
        counts, failures = count(pathlib.Path(folder, f"{name}.xml"))
        if status != "0" and not counts["failed"]:
            counts["failed"] = 1
            failures = [f"the step itself: see {folder}/{name}.log" if status != "not-run" else "not run"]
        details += [f"  FAILED {name}: {failure}" for failure in failures]
        for kind, value in counts.items():
            total[kind] += value
        print(f"{name:<16}{counts['passed']:>8}{counts['failed']:>8}{counts['skipped']:>9}{seconds:>7} s")
    print("\n".join(details) + "\n" if details else "")
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**total))
    return total["failed"] > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
