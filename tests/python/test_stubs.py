"""The types that editors and type checkers read: they name what there is, all of it, and are enough for a user's program."""
import os
import subprocess
import sys


def test_the_stubs_name_what_there_is(programs):
    done = programs.ok(1, """
        import ast, pathlib, re

        def tree(name):
            return ast.parse((pathlib.Path(weft.__file__).parent / name).read_text()).body

        shown = {alias.asname for node in tree("__init__.pyi") if isinstance(node, ast.ImportFrom) for alias in node.names}
        shown |= {node.target.id for node in tree("__init__.pyi") if isinstance(node, ast.AnnAssign)}
        assert shown == set(weft.__all__), shown ^ set(weft.__all__)

        def parameters(function):  # of a stub
            given = function.args
            return [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs) if one.arg not in ("self", "flags")]

        def compare(name, stub, real):
            signature = re.search(r"\\((.*?)\\) ->", real.__nb_signature__[0][0], re.DOTALL).group(1)
            found = [word for word in re.findall(r"(\\w+): ", signature) if word not in ("self", "arg")]
            assert parameters(stub) == found, (name, parameters(stub), found)
            return 1

        from weft import _weft
        count = 0
        for node in tree("_weft.pyi"):
            if isinstance(node, ast.FunctionDef):
                count += compare(node.name, node, getattr(_weft, node.name))
                assert getattr(weft, node.name) is getattr(_weft, node.name)
            elif isinstance(node, ast.ClassDef):
                kind = getattr(_weft, node.name)
                stubs = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
                public = {name for name in vars(kind) if not name.startswith("_")}
                assert {name for name in stubs if not name.startswith("_")} == public, (node.name, public)
                for name in public:
                    real, is_property = vars(kind)[name], bool(stubs[name].decorator_list)
                    assert is_property == isinstance(real, property), (node.name, name)
                    if not is_property and stubs[name].args.vararg is None:
                        count += compare(f"{node.name}.{name}", stubs[name], real)
        say(count)
    """)
    assert int(done.out) > 40


USER = """
import numpy
import numpy.typing
import weft
import weft.moe


def main() -> None:
    with weft.init() as job:
        inbox, halo = weft.zeros((4, 8), "int64"), weft.empty(16, numpy.float32)
        signal, right = weft.zeros(1, "uint64")[0], (job.pe + 1) % job.pe_count
        weft.put(inbox[0], numpy.full(8, job.pe), right)
        weft.put_signal(inbox[1], weft.register(numpy.full(8, 1)), signal, right, value=3, operation="add")
        numbers: numpy.typing.NDArray[numpy.int64] = numpy.asarray(inbox)
        print(numbers.sum(), memoryview(halo).nbytes, halo.shape[0], inbox.peer(job.pe).dtype)
        with weft.Context() as context:
            weft.put_nbi(inbox[2], numbers[3], right, context=context)
        before: int = weft.atomic_fetch_add(inbox[0, 0], 1, 0)
        team: weft.Team = weft.world.split(0, 2, (job.pe_count + 1) // 2)
        if team.is_member:
            team.reduce(inbox[0], inbox[1], "sum")
        index = weft.wait_until_any(inbox[0], ">=", 0)
        print(before + weft.signal_wait_until(signal, ">=", 3), index is None or index + 1, weft.is_mapped(inbox, right))
        try:
            weft.free(halo)
        except weft.PeerLost as error:
            print(error.args, weft.node.pe_count, weft.__version__, weft.include_dir())
        weft.moe.Exchange(max_tokens=1, hidden=8, experts=1, topk=1).close()
"""
WRONG = {  # what is wrong, and a word of what the checker says of it
    'weft.put(weft.zeros(4), numpy.zeros(4), "1")': '"int"',
    "weft.zeros(4).shap": "shap",
    'weft.zeros(4, devise="cpu")': "devise",
    'weft.signal_post(weft.zeros(4), 0, operation="sub")': "operation",
    'weft.world.reduce(weft.zeros(4), weft.zeros(4), "mean")': "reduce",
    "weft.init() + 1": "Job",
}


def test_a_users_program_passes_mypy_strict_and_wrong_lines_do_not(programs, tmp_path):
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "wrong.py").write_text("\n".join(["import numpy", "import weft", *WRONG, ""]))
    path = programs.environment.get("PYTHONPATH", "")
    if "PYTHON_WITH_WEFT" in os.environ:  # that has weft, and this interpreter has numpy
        path = tmp_path / "path"
        path.mkdir()
        (path / "weft").symlink_to(subprocess.run([programs.python, "-c", "import weft; print(weft.__path__[0])"], capture_output=True, text=True, check=True).stdout.strip())
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", "cache", "user.py", "wrong.py"],
                          cwd=tmp_path, env=programs.environment | {"MYPYPATH": str(path)}, capture_output=True, text=True, timeout=120, check=False)
    said = {line.split(":")[1]: line for line in done.stdout.splitlines() if ": error:" in line}
    assert "user.py" not in done.stdout and len(said) == len(WRONG), done.stdout + done.stderr
    for number, word in enumerate(WRONG.values(), 3):
        assert word in said[str(number)], done.stdout
