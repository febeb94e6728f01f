"""Packages in a clean system, and the CPU image under srun on two hosts."""
import re
import shutil

import pytest
from conftest import run

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


class TestPackagesInACleanSystem:
    @pytest.fixture(scope="class")
    def system(self, packages, clean_system):
        for package in packages:
            shutil.copy(package, clean_system.root / "tmp" / package.name)
        install = "apt-get update -qq && apt-get install -qq --no-install-recommends -y /tmp/*.deb"
        clean_system.run("sh", "-c", install, DEBIAN_FRONTEND="noninteractive")
        return clean_system

    def test_the_tools_run_without_libfabric(self, system):
        text = system.run("weft-info")
        assert "libfabric: none could be opened" in text
        assert "libpmix: none could be opened" in text

    def test_a_job_of_one_node_runs(self, system):
        text = system.run("weft-run", "-n", 2, "weft-perf", "put_bw", "-b", MESSAGE, "-e", MESSAGE, **HEAP)
        assert "put_bw" in text

    def test_what_is_recommended_brings_the_rails(self, system):
        system.run("sh", "-c", "apt-get install -qq --no-install-recommends -y libfabric1", DEBIAN_FRONTEND="noninteractive")
        assert re.search(r"libfabric 1\.\d+: rails use ", system.run("weft-info"))


class TestImage:
    def test_it_has_what_it_opens_at_run_time(self, image):
        text = image.run("weft-info")
        assert re.search(r"libfabric \d\.\d+: rails use \S+; ", text), text
        assert re.search(r"libpmix: \S+libpmix\.so\.2 ", text), text

    @pytest.mark.parametrize("mpi", ["pmix", "pmi2"])
    def test_an_all_to_all_under_srun_on_two_hosts(self, cluster, image, mpi):
        output = cluster.ok("srun", f"--mpi={mpi}", "-N", 2, "--ntasks-per-node=2", image.script, "weft-perf",
                            "alltoall_latency", "-b", MESSAGE, "-e", MESSAGE)
        assert "PEs: 4" in output or "4 PEs" in output, output
