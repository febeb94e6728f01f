"""What GPUs move over NVLink, by NVML's throughput counters (nvml.h, NVML_FI_DEV_NVLINK_THROUGHPUT_*).

Owner: the collector's thread. Invariants: optional; without a GPU nothing is said, with one but without the
package pynvml one Notice; a GPU that fails is left out, the others are not.
"""

import os

from ..model import Nic, Notice
from .printable import printable

# nvml.h: data moved in KiB over all links of a GPU when the scope is UINT_MAX; the common speed in
# Mbyte/s.
FIELD_DATA_TX = 138
FIELD_DATA_RX = 139
ALL_LINKS = 0xFFFFFFFF
FIELD_LINK_SPEED = 90
FIELD_LINK_COUNT = 91
GPU_FILES = ("/dev/nvidiactl", "/proc/driver/nvidia/version")
LOOK_NS = 10_000_000_000
INSTALL = "there are GPUs, but the Python package nvidia-ml-py is missing; NVLink is not shown"


def load_nvml():
    """The module pynvml, or None where it is not installed."""
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


class NvlinkSource:
    """One Nic for each GPU that has NVLink. `nvml` is the module pynvml, or what a test puts in its place."""

    name = "nvlink"

    def __init__(self, nvml=None, gpu_files=GPU_FILES):
        self._gpus = []  # (index, handle, name, bits per second or None)
        self._looked = None
        self._trouble = ""
        self._open = False
        self._nvml = None
        if nvml is not None or any(os.path.exists(path) for path in gpu_files):
            self._nvml = nvml or load_nvml()
            self._trouble = "" if self._nvml else INSTALL

    def close(self):
        if self._open:
            self._open = False
            try:
                self._nvml.nvmlShutdown()
            except self._nvml.NVMLError:
                pass  # the driver has gone before us

    def targets(self, pages, keys):
        """None: PEs' rails are no NVLinks."""
        return []

    def notices(self):
        return [Notice(self.name, self._trouble)] if self._trouble else []

    def read(self, time_ns, pages, holders):
        """[Nic]."""
        if self._nvml is None:
            return []
        if self._looked is None or time_ns - self._looked >= LOOK_NS:
            self._looked = time_ns
            self._look()
        nics = []
        for index, handle, name, rate in self._gpus:
            try:
                tx, rx = self._values(handle, [(FIELD_DATA_TX, ALL_LINKS), (FIELD_DATA_RX, ALL_LINKS)])
            except self._nvml.NVMLError:
                continue
            if tx is None or rx is None:
                continue
            counters = {"tx_bytes": tx * 1024, "rx_bytes": rx * 1024}
            state = "up" if rate else "unknown"
            nics.append(Nic(f"nvlink:{index}", "nvlink", name, "", state, rate, "nvidia", "", counters))
        return nics

    def _look(self):
        """Find the GPUs with NVLink, every ten seconds; links are trained when the driver starts."""
        try:
            if not self._open:
                self._nvml.nvmlInit()
                self._open = True
            found = [self._gpu(index) for index in range(self._nvml.nvmlDeviceGetCount())]
            self._gpus = [gpu for gpu in found if gpu]
            self._trouble = ""
        except self._nvml.NVMLError as error:
            self._gpus = []
            self._trouble = f"NVML does not answer ({error}); NVLink is not shown"

    def _gpu(self, index):
        try:
            handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
            tx, speed, count = self._values(handle, [(FIELD_DATA_TX, ALL_LINKS), (FIELD_LINK_SPEED, 0),
                                                     (FIELD_LINK_COUNT, 0)])
            name = self._nvml.nvmlDeviceGetName(handle)
        except self._nvml.NVMLError:
            return None
        if tx is None:
            return None
        rate = speed * 8_000_000 * count if speed and count else None
        return index, handle, f"GPU {index} {printable(name)}", rate

    def _values(self, handle, fields):
        """The values of (field, scope) pairs; None for what the GPU does not have."""
        answers = self._nvml.nvmlDeviceGetFieldValues(handle, fields)
        return [_number(answer) if answer.nvmlReturn == 0 else None for answer in answers]


# nvml.h, nvmlValueType_t: double, unsigned int, unsigned long, unsigned long long, signed long
# long, signed int.
_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal")


def _number(answer):
    if not 0 <= answer.valueType < len(_MEMBERS):
        return None
    value = int(getattr(answer.value, _MEMBERS[answer.valueType]))
    return value if value >= 0 else None
