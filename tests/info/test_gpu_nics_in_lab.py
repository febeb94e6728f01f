"""The NICs of real PEs follow their GPUs: in the lab, whose NICs a made-up machine puts behind the switches of two
GPUs (hwloc takes a machine from HWLOC_XMLFILE), with WEFT_GPU for the GPU that is not there."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GPUS = ("0000:14:00.0", "0000:24:00.0")


def machine_xml():
    """Two sockets; on each a switch with a GPU and two of the lab's NICs."""
    spec = importlib.util.spec_from_file_location("fixtures", ROOT / "scripts/make_topology_fixtures.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    parts = make.sockets(2, 2, 1, 16)
    for socket, (part, bus) in enumerate(zip(parts, (0x10, 0x20))):
        bridge = make.host_bridge(part.package, (bus, bus + 9))
        switch = make.pci_bridge(bridge, f"0000:{bus:02x}:00.0", (bus + 1, bus + 9))
        for k in range(2):
            make.nic(switch, f"0000:{bus + 1 + k:02x}:00.0", make.X710, f"nic{2 * socket + k}", make.NETWORK)
        make.device(switch, f"0000:{bus + 4:02x}:00.0", make.H100)
    return make.render("two GPUs", parts, "For one test.")


@pytest.fixture
def rails(lab, bin_dir, tmp_path):
    """rails({pe: WEFT_GPU}, pes) runs a job on two hosts; {pe: the NICs that it opened, in order}."""
    lab.start("--hosts", "2", "--nics", "4")
    machine = tmp_path / "machine.xml"
    machine.write_text(machine_xml())

    def run(gpus, pes, *settings):
        cases = " ".join(f"{pe}) export WEFT_GPU={gpu};;" for pe, gpu in gpus.items())
        script = f"case $WEFT_PE in {cases} esac; exec {bin_dir}/01_hello 2>{tmp_path}/log.$WEFT_PE"
        variables = [f"HWLOC_XMLFILE={machine}", "WEFT_LOG=info", "WEFT_HEAP_SIZE=8M", *settings]
        done = lab.run("run", "-n", str(pes), "--", "env", *variables, "sh", "-c", script)
        logs = {pe: (tmp_path / f"log.{pe}").read_text() for pe in range(pes)}
        assert done.returncode == 0, done.stderr + json.dumps(logs, indent=1)
        return {pe: re.findall(r"rail \d+ is (nic\d)", log) for pe, log in logs.items()}

    return run


def test_pes_take_the_nics_behind_their_gpus_switch(rails):
    found = rails({0: GPUS[1], 1: GPUS[0], 2: GPUS[0], 3: GPUS[1]}, 4)
    assert found == {0: ["nic2", "nic3"], 1: ["nic0", "nic1"], 2: ["nic0", "nic1"], 3: ["nic2", "nic3"]}


def test_one_pe_a_host_takes_its_gpus_nics_or_all_without_a_gpu(rails):
    found = rails({0: GPUS[1], 1: "none"}, 2)
    assert found == {0: ["nic2", "nic3"], 1: ["nic0", "nic1", "nic2", "nic3"]}


def test_pes_without_a_gpu_share_all_nics(rails):
    assert rails({}, 4) == {pe: ["nic0", "nic1"] if pe % 2 == 0 else ["nic2", "nic3"] for pe in range(4)}
