"""One rank of one library, started by run.py. Takes orders as JSON lines on standard input and answers with JSON lines on
what was standard output; whatever libraries print goes to the log. An order is a case and the methods to measure:

    {"case": {...}, "methods": ["fresh", "chain", "graph", "kernel"], "about": {...}, "effort": 1.0}
"""

import argparse
import dataclasses
import json
import os
import sys
import time
import traceback

TOLERATED_ERROR = 0.06
"""Of a row of the sums: e4m3 has three bits after the point, which is at most 0.0625 of a value and 0.026 of a row."""
TRIALS, REPLAYS, PROFILED = 48, 11, 24


class Worker:
    def __init__(self, options, answer):
        import torch

        import adapters
        import measure
        self._answer, self._given = answer, {}
        device = torch.device("cpu")
        if torch.cuda.is_available():
            device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
            torch.cuda.set_device(device)
        adapter = adapters.load(options.peer)
        self.ranks = measure.Ranks(device, options.meeting)
        self.adapter = adapter(self.ranks)
        gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else "none"
        self.about = {"peer": options.peer, "library": adapter.name, "version": self.adapter.version, "gpu": gpu,
                      "ranks": self.ranks.size}
        answer({"ready": True, **self.about, "modes": list(adapter.modes), "limits_sms": adapter.limits_sms})

    def obey(self, order):
        """Answers with the rows, or with what went wrong; the other orders are still possible after that."""
        import workload
        case = workload.Case(**order["case"])
        rows, errors = [], []
        try:
            is_right = self.verify(case)
        except Exception as error:
            self._answer({"rows": [], "errors": [f"{case.name}: {_in_a_line(error)}"]})
            return
        about = {**self.about, **dataclasses.asdict(case), **order["about"], "verified": is_right}
        for method in order["methods"]:
            try:
                rows += self.measure(method, about, order.get("effort", 1.0))
                self.adapter.check()
            except Exception as error:
                errors.append(f"{case.name}, {method}: {_in_a_line(error)}")
        self._answer({"rows": rows if self.ranks.rank == 0 else [], "errors": errors})

    def verify(self, case):
        """Whether the sums of all ranks are right: for three sets of routes when the case is new, else for the one that is
        measured, which stays prepared."""
        import workload
        worst = 0.0
        for variant in (0,) if case in self._given else (1, 2, 0):
            given = self._given.get(case) or workload.tokens_of(case, self.ranks.rank, variant, self.ranks.device)
            self.adapter.prepare(case, given)
            received = self.adapter.dispatch()
            sums = self.adapter.combine(received, self.adapter.experts(received))
            self.adapter.check()
            error = workload.error_of(sums, given)
            worst = max(worst, error if error == error else float("inf"))
        self._given[case] = given
        worst = max(self.ranks.gather(worst))
        if worst > TOLERATED_ERROR and self.ranks.rank == 0:
            print(f"{case.name}: a row of the sums is wrong by {worst:.3g} of itself", file=sys.stderr)
        return worst <= TOLERATED_ERROR

    def measure(self, method, about, effort):
        import measure
        import summary
        needs = {"graph": self.adapter.can_be_captured, "kernel": self.adapter.kernels}
        if not needs.get(method, True) or method in needs and self.ranks.device.type == "cpu":
            return []
        pair = measure.Pair(self.adapter)
        pair.prepare()
        take = {
            "fresh": lambda: measure.fresh(pair, self.ranks, max(5, int(TRIALS * effort))),
            "chain": lambda: measure.chain(pair, self.ranks),
            "graph": lambda: measure.in_graph(pair, self.ranks, max(3, int(REPLAYS * effort))),
            "kernel": lambda: measure.kernels(pair, self.ranks, PROFILED),
        }[method]
        combined = {"fresh": summary.of_calls, "chain": summary.of_chain, "graph": summary.of_calls,
                    "kernel": summary.of_kernels}[method]
        mine = take()
        by_rank = self.ranks.gather(mine)
        return [summary.row(about, what, method, combined([times[what] for times in by_rank])) for what in mine]


def _in_a_line(error):
    traceback.print_exc()
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}"[:240]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--meeting", required=True, help="a file that does not exist yet, for torch.distributed")
    options = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def answer(message):
        answers.write(json.dumps(message) + "\n")

    started = time.monotonic()
    try:
        worker = Worker(options, answer)
    except BaseException as error:
        answer({"ready": False, "errors": [_in_a_line(error)]})
        os._exit(1)
    print(f"ready after {time.monotonic() - started:.1f} s", file=sys.stderr, flush=True)
    for line in sys.stdin:
        worker.obey(json.loads(line))
    try:
        worker.adapter.close()
    finally:
        sys.stderr.flush()
        os._exit(0)  # some libraries hang in their destructors


if __name__ == "__main__":
    main()
