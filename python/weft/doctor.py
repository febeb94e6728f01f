"""python -m weft.doctor: what of Weft works in this environment of Python, one line each, and what to do where it does not.

Started by weft-run or another launcher it looks at the job too. Status 1 if something needs a change. `weft-info --doctor`
looks at the machine: NICs, GPUs, limits.
"""

import contextlib
import os
import subprocess
import sys
import time

PASSED, FAILED, SKIPPED = "ok  ", "FAIL", "-   "


class _Report:
    def __init__(self):
        self.failed = False

    def say(self, verdict, name, text):
        self.failed = self.failed or verdict == FAILED
        print(f"{verdict} {name:<10} {text}", flush=True)

    @contextlib.contextmanager
    def step(self, name):
        """The block says more by say; what it raises is a failure."""
        try:
            yield
        except Exception as error:  # whatever it is, the other steps go on
            self.say(FAILED, name, f"{type(error).__name__}: {error}")


def _look_at_python(report):
    gil = "" if getattr(sys, "_is_gil_enabled", lambda: True)() else " without a GIL"
    report.say(PASSED, "python", f"{sys.version.split()[0]}{gil}, {sys.executable}")


def _look_at_package(report):
    import weft
    report.say(PASSED, "weft", f"{weft.__version__}, {os.path.dirname(weft.__file__)}")


def _look_at_module(report):
    start = time.perf_counter()
    from .native import core
    took = (time.perf_counter() - start) * 1000
    report.say(PASSED, "module", f"{os.path.basename(core.__file__)} in {took:.0f} ms, with {core.library_path()}")
    return core


def _look_at_library(report, name, found, missing):
    try:
        module = __import__(name)
        report.say(PASSED, name, f"{module.__version__}{found(module)}")
    except Exception as error:
        report.say(SKIPPED, name, f"{missing} ({error})")


def _cuda_of(torch):
    return f", {torch.cuda.device_count()} GPUs" if torch.cuda.is_available() else ", no GPU"


def _try_job(report):
    """A job: this process's own if a launcher started it, else one of one PE."""
    import weft
    with weft.init() as job:
        array, signal = weft.zeros(1000, "int64"), weft.zeros(1, "uint64")
        view = memoryview(array)
        right = (job.pe + 1) % job.pe_count
        source = weft.empty(1000, "int64")
        memoryview(source)[:] = memoryview(bytes(8 * 1000)).cast("q")
        memoryview(source)[7] = job.pe + 1
        weft.put_signal(array, source, signal, right)
        weft.signal_wait_until(signal, "==", 1)
        left = (job.pe - 1) % job.pe_count
        if view[7] != left + 1:
            raise weft.Error(f"PE {left} put {left + 1}, and {view[7]} is there")
        weft.barrier_all()
        nodes = weft.node_count()
        if job.pe == 0:
            found = f"{job.pe_count} PEs on {nodes} node{'s' if nodes > 1 else ''} put to each other"
            report.say(PASSED, "job", found if job.pe_count > 1 else "1 PE puts to itself")
        view.release()


def _try_pair(report):
    """Two PEs by weft-run, if this process was not started as a PE."""
    from .paths import prefix
    program = os.path.join(prefix(), "bin", "weft-run")
    if os.environ.get("WEFT_RENDEZVOUS") or "PMIX_RANK" in os.environ or "PMI_RANK" in os.environ:
        return
    if not os.path.exists(program):
        report.say(SKIPPED, "weft-run", "it is not beside the package; start a job with the launcher that you have")
        return
    done = subprocess.run([program, "-n", "2", "--", sys.executable, "-m", "weft.doctor", "--pe"], capture_output=True, text=True,
                          timeout=120, check=False)
    if done.returncode:
        report.say(FAILED, "weft-run", f"-n 2 ended with status {done.returncode}: {(done.stderr or done.stdout).strip()}")
    else:
        report.say(PASSED, "weft-run", done.stdout.strip()[5:].removeprefix("job").strip())


def main(arguments=None):
    """Returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments not in ([], ["--pe"]):
        print(__doc__.strip() + "\n\nusage: python -m weft.doctor", file=sys.stderr)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    report = _Report()
    if arguments:
        _try_job(report)
        return 0
    first = int(next((os.environ[name] for name in ("WEFT_PE", "PMIX_RANK", "PMI_RANK", "RANK") if name in os.environ), "0")) == 0
    for name, look in (("python", _look_at_python), ("weft", _look_at_package), ("module", _look_at_module)):
        with report.step(name):
            if first:
                look(report)
    if first:
        _look_at_library(report, "numpy", lambda numpy: "", "not installed; memoryview and torch work without it")
        _look_at_library(report, "torch", _cuda_of, "not installed; only weft.torch needs it")
    with report.step("job"):
        _try_job(report)
    with report.step("weft-run"):
        _try_pair(report)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
