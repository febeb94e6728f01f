"""The stubs that editors and type checkers read name what there is, all of it, with the same parameters."""


def test_the_stubs_name_what_there_is(programs):
    done = programs.ok(1, """
        import ast, pathlib, re

        def tree(name):
            return ast.parse((pathlib.Path(weft.__file__).parent / name).read_text()).body

        shown = {alias.asname for node in tree("__init__.pyi") if isinstance(node, ast.ImportFrom) for alias in node.names}
        assert shown | {"__version__"} == set(weft.__all__), shown ^ set(weft.__all__)

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
