#!/usr/bin/env python3
"""Measures MoE dispatch and combine of several libraries in one session, alternating:

  moe/bench/moe_peers/run.py --peers weft,uccl,torch-gather --tokens 1,8,32,128 --json rows.jsonl --logs logs

Each library has processes of its own, one for each GPU, which live through the whole session; only one library works at a
time. A library that cannot start, fails or hangs is ended and named in one line, and the others go on. README.md tells what
a row is."""

import argparse
import collections
import json
import os
import pathlib
import queue
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
NO_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "NVSHMEM_DISABLE_NVLS": "1", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}
LOOPBACK = {f"{library}_SOCKET_IFNAME": "lo" for library in ("GLOO", "NCCL", "UCCL")}
FIRST_PORT = 29_700
START_S, END_S = 75, 5
PROFILED_PART = 0.2
"""Of the limit, kept for the profiler."""
METHODS = ("fresh", "chain", "graph", "kernel")


class Failed(Exception):
    """A library cannot go on; the text says why."""


class Library:
    """The processes of one library: started at once, asked one order at a time."""

    def __init__(self, name, number, options, folder):
        self.name, self.log = name, options.logs / f"{name}.log"
        self.log.unlink(missing_ok=True)
        self._answers = queue.SimpleQueue()
        self._workers = [self._start(rank, number, options, folder) for rank in range(options.ranks)]

    def _start(self, rank, number, options, folder):
        names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": options.ranks, "LOCAL_WORLD_SIZE": options.ranks,
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": FIRST_PORT + 10 * number, "PYTHONUNBUFFERED": 1}
        environment = LOOPBACK | dict(os.environ) | NO_MULTICAST | {name: str(value) for name, value in names.items()}
        for peer, variable, value in options.env:
            if peer == self.name:
                environment[variable] = value
        command = [sys.executable, HERE / "worker.py", "--peer", self.name, "--meeting", folder / f"{self.name}.meeting"]
        with open(self.log, "ab") as log:
            worker = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                      text=True, bufsize=1, start_new_session=True)
        threading.Thread(target=self._listen, args=(rank, worker), daemon=True).start()
        return worker

    def _listen(self, rank, worker):
        for line in worker.stdout:
            self._answers.put((rank, json.loads(line)))
        self._answers.put((rank, None))

    def answers(self, until):
        """{rank: answer} of all ranks. Raises Failed if one of them ends or does not answer in time."""
        answers = {}
        while len(answers) < len(self._workers):
            try:
                rank, answer = self._answers.get(timeout=max(0.01, until - time.monotonic()))
            except queue.Empty:
                missing = sorted(set(range(len(self._workers))) - set(answers))
                raise Failed(f"no answer from rank {', '.join(map(str, missing))}; see {self.log}") from None
            if answer is None or not answer.get("ready", True):
                raise Failed(answer["errors"][0] if answer else self._end_of(rank))
            answers[rank] = answer
        return answers

    def obey(self, order, until):
        try:
            for worker in self._workers:
                worker.stdin.write(json.dumps(order) + "\n")
        except OSError:
            pass  # it has ended, which answers() says
        return self.answers(until)

    def _end_of(self, rank):
        status = self._workers[rank].wait()
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return f"rank {rank} ended with status {status}; last line of {self.log}: {lines[-1][:160] if lines else ''}"

    def ask_to_end(self):
        for worker in self._workers:
            try:
                worker.stdin.close()
            except OSError:
                pass

    def end(self, until):
        """All processes; after `until` those that hang too."""
        self.ask_to_end()
        for worker in self._workers:
            try:
                worker.wait(max(0.01, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()


def cases(options):
    """As arguments of workload.Case."""
    most = max([options.max_tokens, *options.tokens])
    for tokens in options.tokens:
        yield {"mode": "latency", "tokens": tokens, "max_tokens": most}
    for tokens in options.throughput:
        for sms in dict.fromkeys([*options.sms, 0]):
            yield {"mode": "throughput", "tokens": tokens, "max_tokens": tokens, "sms": sms}


class Session:
    """The libraries that are alive, and the rows of all."""

    def __init__(self, options, folder):
        self.until = time.monotonic() + options.limit_s
        self.options, self.rows, self.abilities = options, [], {}
        self.libraries = {name: Library(name, number, options, folder) for number, name in enumerate(options.peers)}

    def start(self):
        until = min(self.until, time.monotonic() + START_S)
        for name in list(self.libraries):
            try:
                answers = self.libraries[name].answers(until)
                self.abilities[name] = answers[0]
                print(f"{name}: {answers[0]['library']} {answers[0]['version']} on {answers[0]['gpu']}", flush=True)
            except Failed as failure:
                self.give_up(name, failure)

    def give_up(self, name, failure):
        print(f"{name}: no more of it: {failure}", flush=True)
        self.libraries.pop(name).end(time.monotonic() + 1)

    def measure(self):
        """Rounds of all timed methods, then the profiler, which slows down what a process launches after it."""
        timed = [method for method in self.options.methods if method != "kernel"]
        profiled = [method for method in self.options.methods if method == "kernel"]
        end_of_rounds = self.until - (PROFILED_PART * self.options.limit_s if profiled else 0)
        for number in range(1, self.options.rounds + 1):
            if not self.round(number, timed, end_of_rounds):
                print(f"the limit of {self.options.limit_s:.0f} s cut round {number} short", flush=True)
                break
        if profiled and not self.round(0, profiled, self.until):
            print(f"the limit of {self.options.limit_s:.0f} s cut the profiler short", flush=True)

    def round(self, number, methods, until):
        """All cases, all libraries; False when time was up."""
        for case in cases(self.options):
            # Another one begins each time, so that none always has the warmer GPU.
            names = collections.deque(self.libraries)
            names.rotate(-number)
            for name in names:
                if time.monotonic() >= until:
                    return False
                if self.can_do(name, case):
                    self.order(name, {"case": case, "methods": methods, "about": {"round": number},
                                      "effort": self.options.effort})
        return True

    def can_do(self, name, case):
        able = self.abilities[name]
        sms = case.get("sms")
        is_asked = sms is None or (sms in self.options.sms if able["limits_sms"] else sms == 0)
        return case["mode"] in able["modes"] and is_asked

    def order(self, name, order):
        try:
            answers = self.libraries[name].obey(order, min(self.until, time.monotonic() + self.options.order_s))
        except Failed as failure:
            is_over = time.monotonic() >= self.until
            self.give_up(name, "the session ended during a case" if is_over else failure)
            return
        for answer in answers.values():
            self.write(answer["rows"])
        for error in dict.fromkeys(error for answer in answers.values() for error in answer["errors"]):
            print(f"{name}: {error}", flush=True)

    def write(self, rows):
        self.rows += rows
        if self.options.json:
            with open(self.options.json, "a") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)

    def end(self):
        for library in self.libraries.values():
            library.ask_to_end()
        until = time.monotonic() + END_S
        for library in self.libraries.values():
            library.end(until)


def table(rows):
    """Medians of the rounds, in microseconds; one line for each case, method and call."""
    cells = collections.defaultdict(list)
    for row in rows:
        what = (row["mode"], row["tokens"], row["sms"], row["method"], row["what"])
        cells[what, row["peer"]].append(row["us"]["median"] if row["verified"] else None)
    peers = list(dict.fromkeys(peer for _, peer in cells))
    lines = ["| mode | tokens | SMs | method | call | " + " | ".join(peers) + " |", "|---" * (5 + len(peers)) + "|"]
    for what in sorted({what for what, _ in cells}):
        values = [cells.get((what, peer), []) for peer in peers]
        shown = ["" if not value else "wrong" if None in value else f"{statistics.median(value):.1f}" for value in values]
        lines.append("| " + " | ".join(map(str, what)) + " | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: [word for word in text.split(",") if word]  # noqa: E731
    numbers = lambda text: [int(word) for word in words(text)]  # noqa: E731
    parser.add_argument("--peers", type=words, required=True, help="names of adapters/__init__.py, by commas")
    parser.add_argument("--tokens", type=numbers, default=[1, 8, 32, 128], help="of each rank, latency mode")
    parser.add_argument("--max-tokens", type=int, default=128, help="for which latency mode makes its buffers")
    parser.add_argument("--throughput", type=numbers, default=[4096], help="tokens of each rank, throughput mode")
    parser.add_argument("--sms", type=numbers, default=[24, 12], help="multiprocessors, throughput mode; 0: no limit")
    parser.add_argument("--methods", type=words, default=list(METHODS), help=f"some of {', '.join(METHODS)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2, help="one GPU each")
    parser.add_argument("--effort", type=float, default=1.0, help="factor for the number of samples")
    parser.add_argument("--limit-s", type=float, default=600.0, help="the session ends then, with what it has")
    parser.add_argument("--order-s", type=float, default=25.0, help="of a library for a case; it hangs if it takes longer")
    parser.add_argument("--json", type=pathlib.Path, help="rows are appended to it")
    parser.add_argument("--logs", type=pathlib.Path, default=pathlib.Path("."), help="a folder for what the libraries print")
    parser.add_argument("--env", action="append", default=[], metavar="PEER:NAME=VALUE", help="a variable for one library")
    options = parser.parse_args()
    options.env = [(text.split(":", 1)[0], *text.split(":", 1)[1].split("=", 1)) for text in options.env]
    options.logs.mkdir(parents=True, exist_ok=True)
    return options


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the finally below ends the processes
    with tempfile.TemporaryDirectory() as folder:
        session = Session(options, pathlib.Path(folder))
        try:
            session.start()
            session.measure()
        finally:
            session.end()
    if session.rows:
        print(table(session.rows))
    sys.exit(0 if session.rows and all(row["verified"] for row in session.rows) else 1)


if __name__ == "__main__":
    main()
