"""`loom run --topology`: the NICs sit where those of a real machine do, for hwloc, for tools that compare paths in
/sys, and so for Weft, whose PEs take the NICs that are near their GPUs."""
import re

import pytest


def info(loom, bin_dir, *options):
    """What weft-info prints on the node."""
    return loom("run", *options, "--", "sh", "-c", f"[ $LOCAL_RANK = 0 ] && exec {bin_dir}/weft-info; true").stdout


def test_a_p5_has_four_nics_behind_the_switch_of_each_of_its_gpus(loom, bin_dir):
    shown = info(loom, bin_dir, "--pes-per-node", 8, "--nics", 4, "--persona", "efa", "--topology", "p5")
    assert "this machine: 96 cores, 96 hardware threads, 2 NUMA nodes, 8 GPUs" in shown
    assert re.findall(r"GPU \d  0000:(\w\w):00.0  NUMA (\d)", shown) == [
        ("53", "0"), ("64", "0"), ("75", "0"), ("86", "0"), ("97", "1"), ("a8", "1"), ("b9", "1"), ("ca", "1")]
    nics = re.findall(r"^rdmap(\d+)s0 +- +0000:(\w\w):00.0 +(\d) .* up +(\w+) \w+$", shown, re.MULTILINE)
    assert len(nics) == 32
    for index, (number, bus, numa, distances) in enumerate(nics):
        assert int(number) == int(bus, 16) and numa == str(index // 16)
        assert distances.index("S") == index // 4 and distances.count("S") == 1 and distances.count("N") == 3
    chosen = re.findall(r"^  rail \d +(rdmap\d+s0) +same PCI switch as this PE's GPU 0000:53:00.0$", shown, re.MULTILINE)
    assert chosen == ["rdmap79s0", "rdmap80s0", "rdmap81s0", "rdmap82s0"]


def test_a_gh200_node_has_a_nic_in_the_numa_node_of_each_gpu(loom, bin_dir):
    shown = info(loom, bin_dir, "--nics", 4, "--persona", "cxi", "--topology", "gh200")
    assert "this machine: 288 cores, 288 hardware threads, 4 NUMA nodes, 4 GPUs" in shown
    nics = re.findall(r"^cxi(\d) +- +(\S+) +(\d) .* up +(\w+) \w+$", shown, re.MULTILINE)
    assert nics == [("0", "0001:01:00.0", "0", "Nooo"), ("1", "0011:01:00.0", "1", "oNoo"),
                    ("2", "0021:01:00.0", "2", "ooNo"), ("3", "0031:01:00.0", "3", "oooN")]
    assert re.search(r"rail 0 +cxi0 +same NUMA node as this PE's GPU 0009:01:00.0", shown)


@pytest.mark.parametrize("persona, topology, nics, path", [
    ("efa", "p5", 4, "infiniband/rdmap96s0/device /sys/class/loom_pci/pci0000:5f/0000:5f:00.0/0000:60:00.0"),
    ("cxi", "gh200", 1, "cxi/cxi1/device /sys/class/loom_pci/pci0011:00/0011:00:00.0/0011:01:00.0")])
def test_paths_of_devices_tell_who_shares_a_switch(loom, namespaces, persona, topology, nics, path):
    link, target = path.split()
    ended = loom("run", "--pes-per-node", 2, "--nics", nics, "--persona", persona, "--topology", topology, "--",
                 "realpath", f"/sys/class/{link}")
    assert set(ended.stdout.split()) == {target}


def test_each_pe_of_a_gh200_node_takes_the_nic_of_its_gpu(loom, bin_dir):
    gpu = "$(printf %04d $((LOCAL_RANK * 10 + 9))):01:00.0"  # 0009, 0019, ...
    script = f"WEFT_LOG=info WEFT_GPU={gpu} {bin_dir}/01_hello 2>&1 | sed s/^/$RANK./"
    ended = loom("run", "--nodes", 2, "--pes-per-node", 4, "--nics", 1, "--persona", "cxi", "--topology", "gh200", "--",
                 "sh", "-c", script)
    rails = dict(re.findall(r"^(\d)\.weft: info: rail 0 is (cxi\d)", ended.stdout, re.MULTILINE))
    assert rails == {str(pe): f"cxi{pe % 4}" for pe in range(8)}, ended.stdout


@pytest.mark.parametrize("options, sentence", [
    (["--topology", "dgx"], "there is no topology 'dgx'; the topologies are none, p5, gh200"),
    (["--topology", "gh200", "--nics", 5], "a node of the topology gh200 has 4 NICs at most, not 5; lower --nics")])
def test_a_topology_that_cannot_be_gets_one_sentence(loom, options, sentence):
    ended = loom("run", *options, "--", "true", status=2)
    assert sentence in ended.stderr and len(ended.stderr.strip().splitlines()) == 1
