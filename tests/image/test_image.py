"""Packages in a clean system, and the CPU image under srun on two hosts."""
import re
import shutil

import pytest
from image_run import run

HEAP = {"WEFT_HEAP_SIZE": "8M"}
MESSAGE = "64K"


@pytest.fixture(scope="module")
def packages(project, tmp_path_factory):
    build = project / "build" / "package"
    if not (build / "CPackConfig.cmake").exists():
        pytest.fail(f"{build} is not built; run scripts/build package")
    folder = tmp_path_factory.mktemp("deb")
    run("cpack", "-G", "DEB", "--config", build / "CPackConfig.cmake", "-B", folder, cwd=build)
    return list(folder.glob("*.deb"))


@pytest.fixture(scope="module")
def system(packages, clean_system):
    """A clean system in which apt has installed both packages and what they depend on."""
    for package in packages:
        shutil.copy(package, clean_system.root / "tmp" / package.name)
    install = "apt-get update -qq && apt-get install -qq --no-install-recommends -y /tmp/*.deb"
    clean_system.run("sh", "-c", install, DEBIAN_FRONTEND="noninteractive")
    return clean_system


class TestPackagesInACleanSystem:
    def test_the_tools_run_with_libfabric_and_without_libpmix(self, system):
        text = system.run("weft-info")
        assert re.search(r"libfabric 1\.\d+: rails use ", text), text  # loom depends on it
        assert "libpmix: none could be opened" in text

    def test_a_job_of_one_node_runs(self, system):
        text = system.run("weft-run", "-n", 2, "weft-perf", "put_bw", "-b", MESSAGE, "-e", MESSAGE, **HEAP)
        assert "put_bw" in text

    def test_two_nodes_run(self, system):
        system.run("weft-run", "-n", 2, "weft-perf", "put_bw", "-b", MESSAGE, "-e", MESSAGE, WEFT_NODE_SIZE="1", **HEAP)


class TestImage:
    def test_it_has_what_it_opens_at_run_time(self, image):
        text = image.run("weft-info")
        assert re.search(r"libfabric \d\.\d+: rails use \S+; ", text), text
        assert re.search(r"libpmix: \S+libpmix\.so\.2 ", text), text

    @pytest.mark.parametrize("mpi", ["pmix", "pmi2"])
    def test_an_all_to_all_under_srun_on_two_hosts(self, cluster, image, mpi):
        output = cluster.ok("srun", f"--mpi={mpi}", "-N", 2, "--ntasks-per-node=2", image.script, "weft-perf",
                            "alltoall_latency", "-b", MESSAGE, "-e", MESSAGE)
        hosts = re.findall(r"^(\d) +nic\d +10\.88\.\1\.", output, re.MULTILINE)
        assert sorted(hosts) == ["0", "0", "1", "1"], output  # two NICs of each, used by one job
