"""Each rule of scripts/check finds a planted violation, and accepts the same thing done right."""
import functools
import pathlib
import subprocess
import sys

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "scripts"))

from checks import RULES, Tree  # noqa: E402: the path above comes first
from checks.commits import complaints  # noqa: E402
from checks import cxx, size  # noqa: E402

RULE = {rule.name: rule for rule in RULES}
HEADER = "// One.\n// Two.\n// Three.\n"


@pytest.fixture
def findings(tmp_path):
    """findings(rule, {path: text}) -> the messages of that rule on a tree of these files."""

    def find(name, files):
        for path, text in files.items():
            full = tmp_path / path
            full.parent.mkdir(parents=True, exist_ok=True)
            full.write_text(text)
        return [finding.message for finding in RULE[name].find(Tree(tmp_path))]

    return find


BAD = [
    ("layers", {"src/base/a.hpp": '#include "src/heap/heap.hpp"\n'}, "base may not use heap"),
    ("layers", {"src/heap/a.hpp": '#include "src/transport/transport.hpp"\n'}, "heap may not use transport"),
    ("layers", {"src/rma/a.cpp": '#  include "src/fabric/rail.hpp"\n'}, "rma may not use fabric"),
    ("layers", {"src/transport/rails/a.cpp": '#include "src/transport/mapped/b.hpp"\n'}, "may not use transport/mapped"),
    ("layers", {"src/transport/a.cpp": '#include "src/transport/mapped/b.hpp"\n'}, "transport may not use transport/mapped"),
    ("layers", {"src/transport/opening/a.cpp": '#include "src/transport/cma/b.hpp"\n'}, "opening may not use transport/cma"),
    ("layers", {"src/transport/rails/a.cpp": '#include "src/transport/opening/b.hpp"\n'}, "may not use transport/opening"),
    ("layers", {"src/network/a.cpp": ""}, "src/network is not a layer"),
    ("layers", {"include/weft/a.h": '#include "src/base/ids.hpp"\n'}, "public headers only"),
    ("layers", {"examples/a.c": '#include "src/base/ids.hpp"\n'}, "public headers only"),
    ("layers", {"tools/perf/a.cpp": '#include "src/rma/rma.hpp"\n'}, "tools/perf may not use"),
    ("layers", {"src/base/a.hpp": '#include "../heap/heap.hpp"\n'}, "climbs out"),
    ("vendors", {"src/rma/a.cpp": "#include <rdma/fabric.h>\n"}, "src/fabric"),
    ("vendors", {"src/heap/a.cpp": "#include <hwloc.h>\n"}, "src/topology"),
    ("vendors", {"src/runtime/a.cpp": "#include <pmix.h>\n"}, "src/bootstrap"),
    ("vendors", {"src/heap/a.cpp": "#include <cuda_runtime.h>\n"}, "src/gpu"),
    ("vendors", {"tools/run/a.cpp": "#include <sodium.h>\n"}, "src/bootstrap"),
    ("vendors", {"src/base/error.cpp": "#include <spdlog/spdlog.h>\n"}, "src/base/log.cpp"),
    ("vendors", {"src/base/a.cpp": "#include <gtest/gtest.h>\n"}, "tests"),
    ("classes", {"src/rma/a.hpp": HEADER + "class A {\n" + "".join(f"  void f{i}();\n" for i in range(26)) + "};\n"}, "A: 26 methods"),
    ("classes", {"tools/lab/a.py": "class A:\n" + "".join(f"    def f{i}(self):\n        pass\n" for i in range(26))}, "A: 26 methods"),
    ("circles", {"src/rma/a.hpp": '#include "src/rma/b.hpp"\n', "src/rma/b.hpp": "", "src/rma/b.cpp": '#include "src/rma/c.hpp"\n',
                 "src/rma/c.hpp": '#include "src/rma/a.hpp"\n'}, "includes and is included by b, c"),
    ("modules", {"tests/lab/test_a.py": "", "tests/top/test_a.py": ""}, "a module of the name of tests/lab/test_a.py"),
    ("types", {"src/rma/a.hpp": "struct Lane {\n  int a;\n};\n", "src/heap/b.cpp": "namespace {\nclass Lane final : B {};\n}\n"},
     "Lane is also a type of src/heap/b.cpp:2"),
    ("types", {"src/rma/a.hpp": "enum class Order { A };\n", "include/weft/b.hpp": "struct Order {};\n"}, "Order is also a type of"),
    ("types", {"moe/src/cpu/a.hpp": "struct Sums {};\n", "moe/src/gpu/kernels/b.cuh": "class Sums {};\n"},
     "Sums is also a type of moe/src/cpu/a.hpp:1"),
    ("width", {"src/rma/a.cpp": "int x;\n// " + "word " * 20 + "\n"}, "a comment of 103 columns"),
    ("width", {"moe/src/cpu/a.cpp": "int x;\n// " + "word " * 20 + "\n"}, "a comment of 103 columns"),
    ("width", {"include/weft/a.h": "/* One.\n   " + "word " * 20 + "*/\n"}, "a comment of 105 columns"),
    ("width", {"scripts/a": "#!/usr/bin/env bash\n# " + "word " * 20 + "\n"}, "a comment of 102 columns"),
    ("tables", {"src/rma/a.cpp": "return kNames[static_cast<std::size_t>(kind)];\n"}, "kNames is indexed"),
    ("folders", {"src/base/utils/a.hpp": ""}, "utils"),
    ("folders", {"tools/common/a.py": ""}, "common"),
    ("atomics", {"src/rma/a.hpp": "#include <atomic>\n"}, "#include <atomic>"),
    ("atomics", {"src/rma/a.hpp": "__atomic_load_n(&x, 2);\n"}, "__atomic_load_n"),
    ("atomics", {"src/rma/a.hpp": "volatile int x;\n"}, "volatile"),
    ("sync", {"src/rma/a.hpp": "x.load(std::memory_order_acquire);\n"}, "acquire has no"),
    ("sync", {"src/rma/a.hpp": "x.load(std::memory_order::acquire);\n"}, "acquire has no"),
    ("sync", {"src/rma/a.hpp": "\n\n\nx.load(std::memory_order_relaxed);\n"}, "relaxed, and no comment"),
    ("sync", {"src/rma/a.hpp": "x.load();\n"}, "names no order"),
    ("sync", {"src/rma/a.hpp": "// SYNC t: why\nx.load(std::memory_order_acquire);\n"}, "SYNC t: no release side"),
    ("sync", {"src/rma/a.hpp": "// SYNC t (b.hpp): why\nx.load(std::memory_order_acquire);\n"}, "not of the form"),
    ("model", {"src/rma/a.hpp": "// SYNC t: why\n", "docs/MEMORY_MODEL.md": "| tag | release |\n|---|---|\n\n`t`\n"}, "SYNC t is in no"),
    ("model", {"docs/MEMORY_MODEL.md": "| tag | release |\n|---|---|\n| `t` | a |\n"}, "no code has the tag t"),
    ("sync", {"src/rma/a.hpp": "// SYNC t: why\n\n\n\n\nx.store(1, std::memory_order_release);\n"}, "release has no"),
    ("sync", {"src/rma/a.hpp": "// SYNC t (pairs with src/rma/b.hpp): why\nx.load(std::memory_order_acquire);\n"},
     "pairs with src/rma/b.hpp, which has no such tag"),
    ("files", {"src/rma/a.cpp": "\n" * 501}, "501 lines"),
    ("files", {"tests/unit/a_test.cpp": "\n" * 801}, "801 lines"),
    ("files", {"tools/lab/a.py": "\n" * 501}, "501 lines"),
    ("files", {"moe/src/gpu/kernels/a.cuh": "// Rows.\n" + "\n" * 500}, "501 lines"),
    ("files", {"moe/src/gpu/kernels/a.cuh": "// 600 lines, as ever.\n" + "\n" * 700}, "701 lines"),
    ("functions", {"src/rma/a.cpp": "void f() {\n" + "  g();\n" * 75 + "}\n"}, "f: 77 lines"),
    ("functions", {"tests/unit/a.cpp": "TEST(A, Long) {\n" + "  g();\n" * 75 + "}\n"}, "TEST: 77 lines"),
    ("functions", {"src/gpu/on_stream/a.cuh": "template <typename T>\n__device__ void f(\n    T t) {\n" + "  g();\n" * 68 + "}\n"}, "f: 71 lines"),
    ("functions", {"tools/lab/a.py": "def f():\n" + "    g()\n" * 75}, "f: 76 lines"),
    ("parameters", {"src/rma/a.cpp": "void f(int a, int b, int c, int d, int e, int g, int h) {}\n"}, "f: 7 parameters"),
    ("parameters", {"src/rma/a.hpp": "class A {\n  void f(int a, int b, int c, int d, int e, int g, int h) const {}\n};\n"},
     "A::f: 7 parameters"),
    ("headers", {"src/rma/a.hpp": "// One.\n//\n#pragma once\n"}, "1 lines of comment"),
    ("questions", {"src/rma/a.cpp": "// TO" + "DO: think\n"}, "open question"),
    ("questions", {"scripts/a": "# FIX" + "ME\n"}, "open question"),
    ("silenced", {"tests/thread.supp": ""}, "suppression file"),
    ("silenced", {"src/rma/a.cpp": "__attribute__((no_" + 'sanitize("thread")))\n'}, "silences"),
    ("links", {"docs/A.md": "[b](B.md)\n"}, "B.md does not exist"),
    ("links", {"docs/A.md": "[b](B.md#what)\n", "docs/B.md": "# Else\n"}, "no heading #what"),
    ("links", {"docs/A.md": "[b](../src/a.cpp#L9)\n", "src/a.cpp": "\n"}, "fewer than 9 lines"),
    ("links", {"docs/A.md": "[b](../src/a.cpp) `Rail::post`\n", "src/a.cpp": "void Rail::poster();\n"}, "no longer names"),
    ("links", {"docs/A.md": "[b](../../etc/passwd)\n"}, "does not exist"),
    ("rows", {"docs/A.md": "| a |\n|---|\n| 1 |\n\n| 2 |\n| 3 |\n"}, "a blank line cuts a table"),
    ("commands", {"README.md": "```sh\n./nothing --now\n```\n"}, "./nothing is not a file"),
    ("commands", {"README.md": "```sh\nA=1 build/release/bin/weft-nothing\n```\n"}, "no tools/nothing"),
    ("data", {f"bench/data/2026-01-01-a-{i}.jsonl": "" for i in range(41)}, "41 files of data"),
    ("data", {"bench/data/2026-01-01-a.jsonl": "x" * 3_100_000}, "3.10 MB of data, at most 3"),
    ("data", {"bench/data/2026-01-01-a.jsonl": "", "bench/data/2026-01-01-b.txt": "2026-01-01-a.jsonl\n"}, "no page and no program names"),
    ("data", {"bench/data/2026-01-01-a.jsonl": "", "docs/A.md": "2026-01-01-a.json\n"}, "no page and no program names"),
    ("pages", {"moe/docs/MOE_MEASUREMENTS.md": "\n" * 151}, "151 lines, at most 150"),
    ("diaries", {"docs/A.md": "before (`2c55a84`) and now\n"}, "2c55a84 is a commit"),
    ("diaries", {"docs/A.md": "# Fifteenth session, through the door\n"}, "Fifteenth session"),
    ("diaries", {"tools/perf/README.md": "## Two H100, 2026-11-25\n"}, "2026-11-25"),
    ("python", {"tools/lab/a.py": "def f(:\n"}, "invalid syntax"),
    ("shell", {"scripts/a": "#!/usr/bin/env bash\nif then\n"}, "syntax error"),
    ("format", {"src/rma/a.cpp": "int  x;\n"}, "not formatted"),
]

GOOD = [
    ("layers", {"src/transport/rails/a.cpp": '#include "src/transport/transport.hpp"\n#include "src/transport/rails/b.hpp"\n'}),
    ("layers", {"src/runtime/a.cpp": '#include "src/transport/rails/b.hpp"\n#include <weft/weft.h>\n'}),
    ("layers", {"src/transport/opening/a.cpp": '#include "src/transport/faulty/b.hpp"\n#include "src/transport/rails/b.hpp"\n'}),
    ("layers", {"tools/run/a.cpp": '#include "src/bootstrap/rendezvous.hpp"\n'}),
    ("vendors", {"src/fabric/a.cpp": "#include <rdma/fabric.h>\n", "tools/run/a.cpp": "#include <hwloc.h>\n",
                 "src/base/log.cpp": "#include <spdlog/spdlog.h>\n", "src/gpu/a.cpp": "#include <cuda.h>\n"}),
    ("classes", {"src/rma/a.hpp": HEADER + "class A : B {\n  A() = default;\n  struct C { void g(); };\n" +
                 "".join(f"  void f{i}();\n" for i in range(25)) + "  void h() override;\n};\nvoid after();\n"}),
    ("tables", {"src/rma/a.cpp": "return names[static_cast<std::size_t>(kind)];\n"}),
    ("atomics", {"src/base/atomic.hpp": "#include <atomic>\n", "src/rma/a.hpp": "asm volatile(\"\"); // volatile\n"}),
    ("sync", {"src/rma/a.hpp": "// SYNC t: why,\n// over two lines.\nx.load(std::memory_order_acquire);\n"
                               "// SYNC t: why\nx.store(1, std::memory_order_release);\n"}),
    ("sync", {"src/rma/a.hpp": "// SYNC t: both sides\nx.exchange(1, std::memory_order_acq_rel);\n"
                               "y.load(std::memory_order_relaxed);  // relaxed: one writer\n"}),
    ("sync", {"src/rma/a.hpp": "// SYNC t (pairs with src/rma/b.hpp): why\nx.load(std::memory_order_acquire);\n",
              "src/rma/b.hpp": "// SYNC t (pairs with src/rma/a.hpp): why\nx.store(1, std::memory_order_release);\n"}),
    ("model", {"src/rma/a.hpp": "// SYNC t: why\n// SYNC u: why\n",
               "docs/MEMORY_MODEL.md": "| other |\n|---|\n| `x` |\n\n| tag | release |\n|---|---|\n| `t`, `u` | `a` |\n"}),
    ("files", {"include/weft/typed.h": "// Generated by scripts/x\n" + "\n" * 900}),
    ("classes", {"tools/lab/a.py": "class A:\n" + "".join(f"    def f{i}(self):\n        pass\n" for i in range(25))}),
    ("circles", {"src/rma/a.cpp": '#include "src/rma/a.hpp"\n#include "src/rma/b.hpp"\n', "src/rma/a.hpp": "",
                 "src/rma/b.hpp": '#include "src/rma/c.hpp"\n', "src/rma/c.hpp": "", "src/heap/d.hpp": '#include "src/rma/a.hpp"\n'}),
    ("types", {"src/rma/a.hpp": "struct A {\n  struct Options {};\n};\nstruct B::State {};\ntemplate <>\nstruct C<int> {};\n",
               "src/heap/b.hpp": "class B {\n  struct Options {};\n};\nstruct State;\nstruct C {};\n", "tools/run/a.hpp": "struct A {};\n",
               "tools/info/a.hpp": "struct A {};\n", "moe/src/cpu/a.hpp": "struct A {};\n", "moe/bench/a.cpp": "struct A {};\n"}),
    ("files", {"moe/src/gpu/kernels/a.cuh": "// Rows. 600 lines, as both protocols\n// share them.\n" + "\n" * 600}),
    ("functions", {"src/rma/a.cpp": "namespace weft {\nclass A {\n" + "  void f() {}\n\n" * 60 + "};\n}\n"}),
    ("parameters", {"src/rma/a.cpp": "std::array<int, 9> kA{f(1, 2, 3, 4, 5, 6, 7)};\n"}),
    ("width", {"src/rma/a.cpp": 'const char* a = "// ' + "word " * 20 + '";\n// https://example.org/' + "x" * 90 + "\n",
               "tools/lab/a.py": "a = '" + "word " * 20 + "'\n", "include/weft/b.h": "// Generated by scripts/x\n// " + "word " * 20 + "\n"}),
    ("modules", {"tests/lab/test_a.py": "", "tests/lab/conftest.py": "", "tests/top/conftest.py": "", "tools/a.py": "", "demo/a.py": ""}),
    ("headers", {"src/rma/a.hpp": HEADER + "#pragma once\n", "src/rma/a.cpp": "int x;\n"}),
    ("questions", {"src/rma/a.cpp": 'mkstemp("/tmp/weft-XX' + 'XXXX");\n'}),
    ("links", {"docs/A.md": "[b](../src/a.cpp) `Rail::post()` [c](#the-end) [d](https://example.org)\n```\n[x](nothing)\n```\n"
                            "# The end\n", "src/a.cpp": "struct Rail {\n  int post();\n};\n"}),
    ("rows", {"docs/A.md": "| a |\n|---|\n| 1 |\n\n| b |\n|---|\n| 2 |\n\nText\n\n```\n| x |\n\n| y |\n```\n"}),
    ("commands", {"README.md": "```sh\n# a comment\n./test --quick\nPATH=x build/release/bin/weft-run -n 2 cmd\n```\n"
                               "```c\nnothing();\n```\n", "test": "", "tools/run/a.cpp": ""}),
    ("data", {"bench/data/2026-01-01-a.jsonl": "x" * 2_900_000, "bench/data/2026-01-01-b.txt": "", "scripts/make_pictures": "$data/2026-01-01-a.jsonl\n",
              "docs/A.md": "[data](../bench/data/2026-01-01-b.txt)\n"}),
    ("pages", {"docs/PERFORMANCE.md": "\n" * 300, "docs/GPU.md": "\n" * 900}),
    ("diaries", {"docs/A.md": "Two H100, 2026-11-25: 1234567 puts a second, in one session; `weft_session_end`, 0x7fa1b2c3\n",
                 "docs/decisions/0001-a.md": "at `2c55a84`, in the second session\n"}),
    ("format", {"src/rma/a.cpp": "int x;\n", "src/rma/b.hpp": "// Generated by scripts/x\nint  x;\n"}),
]


def name_of(case):
    return f"{case[0]}-{next(iter(case[1]))}"


@pytest.mark.parametrize("case", BAD, ids=name_of)
def test_a_planted_violation_is_found(findings, case):
    rule, files, words = case
    found = findings(rule, files)
    assert any(words in message for message in found), found


@pytest.mark.parametrize("case", GOOD, ids=name_of)
def test_what_is_right_passes(findings, case):
    rule, files = case
    assert findings(rule, files) == []


FUNCTIONS = [
    ("int f(int a, int b) {\n  return a;\n}", ("f", 3, 2)),
    ("void A::f(std::map<int, int> a) const noexcept {\n}", ("A::f", 2, 1)),
    ("A::A(int a, int b)\n    : a_{a}, b_(b) {\n  if (a) {\n  }\n}", ("A::A", 5, 2)),
    ("template <typename T, int kN>\nT f(std::function<void(int, int)> g, T t) {\n}", ("f", 2, 2)),
    ("int A::operator()(int a, int b) {\n}", ("A::operator ( )", 2, 2)),
    ('extern "C" int f(const char* a) {\n  puts("}}");  // }\n}', ("f", 3, 1)),
    ("void f() {\n  auto g = [](int a) {\n    return a;\n  };\n}", ("f", 5, 0)),
    ("TEST(A, IsLong) {\n  f();\n}", ("TEST", 3, 2)),
]


@pytest.mark.parametrize("text, expected", FUNCTIONS, ids=[text.split("\n")[0] for text, _ in FUNCTIONS])
def test_functions_are_found_with_their_lines_and_parameters(text, expected):
    """What scripts/check needs of lizard, whose next version may count otherwise."""
    (function,) = cxx.functions(text)
    assert (function.name, function.lines, function.parameters) == expected


METHODS = [
    ("struct A {\n  A(int a) : a_{a}, b_(a) {}\n  virtual void f(int a, int b) = 0;\n};", ["A", "f"]),
    ("class A : public B<int> {\n public:\n  A() = default;\n  ~A();\n  void g() override;\n  friend void h(A);\n};", ["A"]),
    ("struct A {\n  void (*f)(int);\n  std::function<void(int)> g;\n  int a = f(1);\n  E e{f(1)};\n  alignas(8) int b;\n};", []),
    ("struct A {\n  [[nodiscard]] int f(int a = g({1, 2})) const {\n    if (a) {\n      h();\n    }\n  }\n  bool operator==(A b);\n};",
     ["f", "operator"]),
    ("class alignas(8) A final {\n  using B = void(int);\n  template <typename T>\n  auto f(T t) -> std::pair<T, T>;\n};", ["f"]),
    ("enum class A { B = f(1) };", []),
]


@pytest.mark.parametrize("text, expected", METHODS, ids=[text.split("\n")[0] for text, _ in METHODS])
def test_a_type_is_found_with_its_methods(text, expected):
    (found,) = cxx.types(text)
    assert (found.name, found.methods) == ("A", expected)


def test_methods_in_a_nested_type_are_its_own():
    assert [(t.name, t.outer, t.methods) for t in cxx.types("struct A {\n  struct B { void f(); };\n  void g();\n};")] == [
        ("A", (), ["g"]), ("B", ("A",), ["f"])]


def test_limits_of_clang_tidy_and_of_lizard_are_the_same():
    options = (PROJECT / ".clang-tidy").read_text()
    assert f"readability-function-size.LineThreshold: {size.FUNCTION_LINES_MAX}\n" in options
    assert f"readability-function-size.ParameterThreshold: {size.PARAMETERS_MAX}\n" in options


COMMITS = [
    ("rails: paired bursts\n\nWithout them two senders met on one rail.\n", None),
    ("gpu, moe/src: one sentence for missing ranks\n\nThere were two.\n", None),
    ("rails: " + "x" * 66 + "\n\nWhy.\n", "its title has 73 columns"),
    ("Improve things\n\nWhy.\n", "not of the form"),
    ("rails: paired bursts\n", "no body"),
    ("rails: paired bursts\n\nSigned-off-by: A <a@example.org>\n", "no body"),
]


@pytest.mark.parametrize("message, expected", COMMITS, ids=range(len(COMMITS)))
def test_a_commit_has_a_short_title_and_a_body(message, expected):
    found = list(complaints(message))
    assert (not found) if expected is None else any(expected in words for words in found), found


def test_commits_are_read_from_the_history(tmp_path, findings):
    run = functools.partial(subprocess.run, cwd=tmp_path, check=True, capture_output=True)
    run(["git", "init", "--quiet"])
    run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--allow-empty", "-m", "rails: paired bursts"])
    assert findings("commits", {}) == ["'rails: paired bursts': it has no body that says why"]


def test_every_rule_has_a_planted_violation():
    assert {case[0] for case in BAD} | {"commits"} == set(RULE)  # which has its own above


def test_each_message_says_the_rule_the_reason_and_the_fix():
    for rule in RULES:
        assert rule.says and rule.because and rule.fix
