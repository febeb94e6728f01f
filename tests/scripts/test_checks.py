"""Each rule of scripts/check finds a planted violation, and accepts the same thing done right."""
import pathlib
import sys

import pytest

PROJECT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "scripts"))

from checks import RULES, Tree  # noqa: E402: the path above comes first
from checks.size import Scanner  # noqa: E402

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
    ("functions", {"src/rma/a.cpp": "void f() {\n" + "  g();\n" * 75 + "}\n"}, "f: 76 lines"),
    ("functions", {"tests/unit/a.cpp": "TEST(A, Long) {\n" + "  g();\n" * 75 + "}\n"}, "TEST: 76 lines"),
    ("functions", {"tools/lab/a.py": "def f():\n" + "    g()\n" * 75}, "f: 75 lines"),
    ("parameters", {"src/rma/a.cpp": "void f(int a, int b, int c, int d, int e, int g, int h) {}\n"}, "f: 7 parameters"),
    ("parameters", {"src/rma/a.hpp": "class A {\n  void f(int a, int b, int c, int d, int e, int g, int h) const;\n};\n"},
     "f: 7 parameters"),
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
    ("commands", {"README.md": "```sh\n./nothing --now\n```\n"}, "./nothing is not a file"),
    ("commands", {"README.md": "```sh\nA=1 build/release/bin/weft-nothing\n```\n"}, "no tools/nothing"),
    ("python", {"tools/lab/a.py": "def f(:\n"}, "invalid syntax"),
    ("shell", {"scripts/a": "#!/usr/bin/env bash\nif then\n"}, "syntax error"),
    ("format", {"src/rma/a.cpp": "int  x;\n"}, "not formatted"),
]

GOOD = [
    ("layers", {"src/transport/rails/a.cpp": '#include "src/transport/transport.hpp"\n#include "src/transport/rails/b.hpp"\n'}),
    ("layers", {"src/runtime/a.cpp": '#include "src/transport/rails/b.hpp"\n#include <weft/weft.h>\n'}),
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
    ("functions", {"src/rma/a.cpp": "namespace weft {\nclass A {\n" + "  void f() {}\n\n" * 60 + "};\n}\n"}),
    ("parameters", {"src/rma/a.cpp": "std::array<int, 9> kA{f(1, 2, 3, 4, 5, 6, 7)};\n"}),
    ("headers", {"src/rma/a.hpp": HEADER + "#pragma once\n", "src/rma/a.cpp": "int x;\n"}),
    ("questions", {"src/rma/a.cpp": 'mkstemp("/tmp/weft-XX' + 'XXXX");\n'}),
    ("links", {"docs/A.md": "[b](../src/a.cpp) `Rail::post()` [c](#the-end) [d](https://example.org)\n```\n[x](nothing)\n```\n"
                            "# The end\n", "src/a.cpp": "struct Rail {\n  int post();\n};\n"}),
    ("commands", {"README.md": "```sh\n# a comment\n./test --quick\nPATH=x build/release/bin/weft-run -n 2 cmd\n```\n"
                               "```c\nnothing();\n```\n", "test": "", "tools/run/a.cpp": ""}),
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
    ("int f(int a, int b) {\n  return a;\n}", ("f", 2, 2)),
    ("void A::f(std::map<int, int> a) const noexcept {\n}", ("f", 1, 1)),
    ("A::A(int a, int b)\n    : a_{a}, b_(b) {\n  if (a) {\n  }\n}", ("A", 3, 2)),
    ("auto f(void) -> std::pair<int, int> {\n}", ("f", 1, 0)),
    ("template <typename T, int kN>\nT f(std::function<void(int, int)> g, T t) {\n}", ("f", 1, 2)),
    ("bool operator==(const A& a, const A& b) {\n}", ("operator==", 1, 2)),
    ("int A::operator()(int a, int b) {\n}", ("operator()", 1, 2)),
    ("[[nodiscard]] int f(int a = g({1, 2, 3}), int b = 2) {\n}", ("f", 1, 2)),
    ('extern "C" int f(const char* a) {\n  puts("}}");  // }\n}', ("f", 2, 1)),
    ("void f() {\n  auto g = [](int a) {\n    return a;\n  };\n}", ("f", 4, 0)),
    ("WEFT_EXPORT int f(int a, int b);", ("f", 0, 2)),
    ("virtual void f(int a, int b) = 0;", ("f", 0, 2)),
]


@pytest.mark.parametrize("text, expected", FUNCTIONS, ids=[text.split("\n")[0] for text, _ in FUNCTIONS])
def test_functions_are_found_with_their_lines_and_parameters(text, expected):
    (function,) = Scanner(text).scan()
    assert (function.name, function.lines, function.parameters) == expected


def test_values_types_and_control_flow_are_no_functions():
    text = ("enum class A { B, C };\nstruct D {\n  int a = f(1, 2);\n  E e{f(1)};\n};\nconst int x = g(1, 2);\n"
            "std::vector<int> v{1, 2};\nusing F = void(int, int);\n")
    assert Scanner(text).scan() == []


def test_every_rule_has_a_planted_violation():
    assert {case[0] for case in BAD} == set(RULE)


def test_each_message_says_the_rule_the_reason_and_the_fix():
    for rule in RULES:
        assert rule.says and rule.because and rule.fix
