"""Manifests: Kubernetes' own schemas for what Kubernetes defines, small ones of ours around it, and misspelt keys fail."""
import copy
import json
import os
import pathlib
import re
import subprocess

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML is missing; scripts/setup installs it")
jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is missing; scripts/setup installs it")
kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is missing; scripts/setup installs it")

HERE = pathlib.Path(__file__).parent
KINDS = {"MPIJob": "mpijob.schema.json", "JobSet": "jobset.schema.json"}
# Maps whose keys are the user's; PodMonitor belongs to an operator whose schema is not at hand.
FREE_MAPS = {"labels", "matchLabels", "nodeSelector", "limits", "requests", "annotations"}
WITHOUT_SCHEMA = {"PodMonitor"}


@pytest.fixture(scope="module")
def manifests(deploy):
    """Each document of each file."""
    found = {}
    for path in sorted(deploy.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            found[document["kind"]] = document
    return found


def core_objects(document):
    """What Kubernetes itself defines: the document, or the templates in it as objects of their own."""
    spec = document["spec"]
    if document["kind"] == "MPIJob":
        for replica in spec["mpiReplicaSpecs"].values():
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "template"}, **replica["template"]}
    elif document["kind"] == "JobSet":
        for job in spec["replicatedJobs"]:
            yield {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "template"}, **job["template"]}
    else:
        yield document


def check(document, version):
    if schema := KINDS.get(document["kind"]):
        jsonschema.validate(document, json.loads((HERE / schema).read_text()))
    for core in core_objects(document):
        kubernetes_validate.validate(core, version, strict=True)


def is_valid(document, version):
    try:
        check(document, version)
    except (jsonschema.ValidationError, kubernetes_validate.ValidationError, KeyError, AttributeError):
        return False
    return True


def keys(node, path=()):
    """The path of each key whose name a schema fixes."""
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from keys(item, (*path, index))
    elif isinstance(node, dict):
        for key, value in node.items():
            if not path or path[-1] not in FREE_MAPS:
                yield (*path, key)
                yield from keys(value, (*path, key))


def misspelt(document, path):
    changed = copy.deepcopy(document)
    node = changed
    for step in path[:-1]:
        node = node[step]
    node[path[-1] + "x"] = node.pop(path[-1])
    return changed


def test_all_manifests_are_there(manifests):
    assert set(manifests) == {"MPIJob", "JobSet", "DaemonSet", "PodMonitor"}


@pytest.mark.parametrize("kind", ["MPIJob", "JobSet", "DaemonSet"])
def test_a_manifest_is_valid_and_each_misspelt_key_fails(manifests, versions, kind):
    document, version = manifests[kind], versions["KUBERNETES"]
    check(document, version)
    paths = list(keys(document))
    assert len(paths) > 20
    unnoticed = [".".join(map(str, path)) for path in paths if is_valid(misspelt(document, path), version)]
    assert not unnoticed


@pytest.mark.parametrize(("kind", "version"), [("MPIJob", "MPIJOB_API"), ("JobSet", "JOBSET_API")])
def test_a_manifest_is_for_the_version_of_the_list(manifests, versions, kind, version):
    assert manifests[kind]["apiVersion"] == versions[version]


def containers(document):
    for core in core_objects(document):
        spec = core["spec"]
        spec = spec if core["kind"] == "Pod" else spec["template"]["spec"]
        yield from spec["containers"]


def test_images_have_the_version_of_weft(manifests, project):
    release = re.search(r"project\(weft VERSION (\d+\.\d+)", (project / "CMakeLists.txt").read_text())[1]
    for kind in sorted(set(manifests) - WITHOUT_SCHEMA):
        for container in containers(manifests[kind]):
            assert container["image"].endswith(f":{release}"), kind


def test_mpirun_hands_on_every_variable_that_the_image_sets(manifests, deploy):
    launcher = next(c for c in containers(manifests["MPIJob"]) if c["name"] == "launcher")
    arguments = launcher["args"]
    handed_on = {value.partition("=")[0] for option, value in zip(arguments, arguments[1:]) if option == "-x"}
    set_by_image = set(re.findall(r"^ENV (\w+)=", (deploy / "efa.Containerfile").read_text(), re.MULTILINE))
    assert {name for name in set_by_image if name.startswith(("WEFT_", "FI_"))} <= handed_on
    assert {"WEFT_PROVIDER", "PATH"} <= handed_on


def test_ranks_and_slots_of_the_mpijob_agree(manifests):
    spec = manifests["MPIJob"]["spec"]
    worker = spec["mpiReplicaSpecs"]["Worker"]
    arguments = next(c for c in containers(manifests["MPIJob"]) if c["name"] == "launcher")["args"]
    assert int(arguments[arguments.index("-np") + 1]) == worker["replicas"] * spec["slotsPerWorker"]


def test_counter_pages_of_jobs_are_where_the_exporter_looks(manifests):
    exporter, = containers(manifests["DaemonSet"])
    folder = next(argument.partition("=")[2] for argument in exporter["args"] if argument.startswith("--pages="))
    for kind in ("MPIJob", "JobSet"):
        assert f"WEFT_COUNTERS_DIR={folder}" in json.dumps(manifests[kind]) or any(
            {"name": "WEFT_COUNTERS_DIR", "value": folder} in container.get("env", []) for container in containers(manifests[kind])), kind


def test_the_command_of_the_jobset_runs_as_two_pods(manifests, bin_dir, tmp_path):
    """Two shells as two pods of two PEs on this machine, each pod a node."""
    if not (bin_dir / "weft-perf").exists():
        pytest.skip("weft-perf is not built")
    container, = containers(manifests["JobSet"])
    command = container["args"][0].replace("--duration 5", "--duration 0.2").replace("-b 1M -e 4M", "-b 4K -e 4K")
    given = {entry["name"]: entry.get("value", "a secret") for entry in container["env"]}
    port = 20000 + os.getpid() % 20000
    environment = {**os.environ, **given, "PATH": f"{bin_dir}:{os.environ['PATH']}", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                   "LOCAL_WORLD_SIZE": "2", "WEFT_NODE_SIZE": "2", "WEFT_HEAP_SIZE": "16M", "WEFT_COUNTERS_DIR": str(tmp_path),
                   "WEFT_NICS": "127.0.0.1"}
    pods = [subprocess.Popen([*container["command"], command], env={**environment, "JOB_COMPLETION_INDEX": str(pod)},
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for pod in range(int(given["NODES"]))]
    outputs = [pod.communicate(timeout=60)[0] for pod in pods]
    assert [pod.returncode for pod in pods] == [0, 0], "".join(outputs)
    assert "max/mean" in outputs[0]
