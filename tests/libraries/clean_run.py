"""Programs in an environment without variables of Weft, of launchers and of the loader."""
import os
import subprocess

LIMIT_S = 60


def clean_environment(variables):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("WEFT_", "PMI", "SLURM_", "LD_LIBRARY"))}
    return {**kept, **variables}


def run(*command, **variables):
    """The finished process; both streams are in `stdout`."""
    return subprocess.run([str(word) for word in command], env=clean_environment(variables), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)
