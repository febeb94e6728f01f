"""What /proc says of a process: when it started, what it is called. No state, any thread."""

from .printable import printable


def start_ticks(pid):
    """Field 22 of /proc/PID/stat (proc_pid_stat(5)); None if there is no such process, or only its corpse."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The second field is the command's name and may contain blanks and brackets.
            fields = file.read().rpartition(b")")[2].split()
        return None if fields[0] in b"ZX" else int(fields[19])
    except (OSError, IndexError, ValueError):
        return None


def command_of(pid):
    """The name of a process's program; "" if it is not to be seen."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            return printable(file.read().rstrip(b"\n"))
    except OSError:
        return ""
