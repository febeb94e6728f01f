"""A command that has to succeed, with time for a build."""
import subprocess

LIMIT_S = 1800


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=LIMIT_S, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-6000:]}"
    return done.stdout
