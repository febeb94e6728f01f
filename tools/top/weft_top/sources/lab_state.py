"""The labs that are up on this machine, read from their state files (tools/lab/README.md has the format).

Reads only: unlike weft-lab it neither makes the directory nor removes what is stale. Owner: the collector's thread.
"""

import json
import os
from dataclasses import dataclass
from typing import Mapping, Optional, Tuple

from .printable import printable
from .processes import start_ticks

VERSION = 1
DEFAULT_LAB = "default"


@dataclass(frozen=True)
class LabHost:
    """One host of a lab: how it is called here, where its namespace is, and the rates of its NICs."""

    label: str
    net_namespace: str
    rates_bits_per_s: Mapping[str, int]


@dataclass(frozen=True)
class Lab:
    name: str
    holder_pid: int
    holder_start_ticks: int
    user_namespace: Optional[str]
    hosts: Tuple[LabHost, ...]

    def is_alive(self):
        return start_ticks(self.holder_pid) == self.holder_start_ticks


def directory():
    """Where this user's labs leave their files."""
    path = os.environ.get("WEFT_LAB_DIR")
    if path:
        return path
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return os.path.join(runtime, "weft-lab") if runtime else f"/tmp/weft-lab-{os.getuid()}"


def parse(text):
    """The Lab in a state file's text; a ValueError if it is none."""
    try:
        document = json.loads(text)
        if document["version"] != VERSION:
            raise ValueError(f"version {document['version']}, this weft-top reads {VERSION}")
        name = printable(document["name"])
        hosts = tuple(_host(name, host) for host in document["hosts"])
        pid, ticks = int(document["holder_pid"]), int(document["holder_start_time"])
        return Lab(name, pid, ticks, document["user_namespace"], hosts)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"damaged ({error!r})") from error


def _host(lab_name, host):
    label = printable(host["name"]) if lab_name == DEFAULT_LAB else f"{lab_name}/{printable(host['name'])}"
    rates = {nic["name"]: nic["rate_bits_per_s"] for nic in host["nics"] if nic["rate_bits_per_s"]}
    return LabHost(label, str(host["net_namespace"]), rates)


class LabFiles:
    """The state files, parsed again only when they change."""

    def __init__(self, path=None):
        self._directory = path or directory()
        self._parsed = {}  # file name -> (what identifies its content, Lab or None)
        self.trouble = ""

    def living(self):
        """[Lab] of the labs that are up."""
        try:
            names = sorted(name for name in os.listdir(self._directory) if name.endswith(".json"))
        except OSError:
            names = []  # no directory, no lab
        self.trouble = ""
        labs = [lab for lab in (self._lab(name) for name in names) if lab and lab.is_alive()]
        self._parsed = {name: entry for name, entry in self._parsed.items() if name in names}
        return labs

    def _lab(self, name):
        path = os.path.join(self._directory, name)
        try:
            status = os.stat(path)
            identity = (status.st_ino, status.st_mtime_ns, status.st_size)
            if self._parsed.get(name, (None,))[0] != identity:
                with open(path, encoding="utf-8") as file:
                    self._parsed[name] = (identity, parse(file.read(1 << 24)))
            return self._parsed[name][1]
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self.trouble = f"cannot use the lab's state file {path}: {error}"
            return None
