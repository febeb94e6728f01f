"""The summary of ./test: reads `NAME STATUS SECONDS` lines from stdin and NAME.xml (JUnit) from the
folder given, prints one table and, alone on the last line, `N passed, N failed, N skipped`.

A step that failed without a failing test in its file (a build, a crash, a time limit) counts as one
failure, so that a lost result is never taken for a good one."""
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

# CTest files a test whose program is missing under "skipped"; for us that is a failure.
BROKEN_SKIPS = ("Unable to find", "Required Files Missing", "NOT_BUILT")


def outcome(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    skip = case.find("skipped")
    if skip is None:
        return "passed"
    broken = any(words in skip.get("message", "") for words in BROKEN_SKIPS)
    return "failed" if broken else "skipped"


def count(path):
    """Outcomes by kind, and the names of the tests that failed."""
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
            failures.append(case.get("name"))
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
