"""What is added of each kind, and how it is found to be there. An addition is a function for each file of the page's list,
which returns the file's new text; `check` uses what was added, and raises if it is not there or does not work."""
import os
import re
from dataclasses import dataclass, field
from typing import Callable

from .scratch import Failed, run

NAME = "example"


@dataclass
class Kind:
    changes: dict  # path -> function(text of the file, or of the project's example) -> text
    check: Callable  # of a Scratch
    generated: dict = field(default_factory=dict)  # path (of a file or folder) -> function(Scratch) that writes it


def after(anchor, added):
    """The file with `added` behind the only `anchor`."""
    return lambda text: replaced(text, anchor, anchor + added)


def before(anchor, added):
    return lambda text: replaced(text, anchor, added + anchor)


def replaced(text, old, new):
    if text.count(old) != 1:
        raise AssertionError(f"{old!r} is there {text.count(old)} times: this addition has to follow the code")
    return text.replace(old, new)


def new_file(text):
    return lambda _: text


def need(condition, words):
    if not condition:
        raise Failed(words)


# ---- Documents from the configuration table

ENV_OF_WEFT_INFO = """
#include <cstdio>
#include <cstring>

#include "src/base/config.hpp"
#include "tools/info/env_table.hpp"

int main(int argc, char** argv) {
  const auto is_asked = [&](const char* option) { return argc > 2 && std::strcmp(argv[2], option) == 0; };
  const weft::Lookup none = [](std::string_view) { return std::optional<std::string>(); };
  std::fputs((is_asked("--markdown") ? weft::settings_markdown()
              : is_asked("--json")   ? weft::info::env_json(none)
                                     : weft::info::env_text(none)).c_str(), stdout);
}
"""


def weft_info(scratch):
    """What answers `--env` as weft-info does, without its parts that need the whole library compiled anew."""
    scratch.write("bench/env_of_weft_info.cpp", ENV_OF_WEFT_INFO)
    like = "tools/info/env_table.cpp"
    objects = [scratch.compile("src/base/config.cpp"), scratch.compile(like), scratch.compile("bench/env_of_weft_info.cpp", like)]
    return scratch.link("bootstrap_probe", objects, ["bootstrap_probe.cpp.o"])


def write_docs(scratch):
    paths = ("docs/ENV.md", "tools/top/weft_top/rail_policies.py")
    before_it = {path: scratch.read(path) for path in paths}
    run([scratch.tree / "scripts/generate_docs", "--program", weft_info(scratch)], cwd=scratch.tree)
    written = {path: scratch.read(path) for path in paths}
    for path, text in before_it.items():
        (scratch.tree / path).write_text(text, encoding="utf-8")
    return written


def write_doc(path):
    return lambda scratch: scratch.write(path, write_docs(scratch)[path])


def keep_screens(scratch):
    for screen in (scratch.tree / "tests/top/screens").iterdir():
        scratch.write(screen.relative_to(scratch.tree).as_posix(), screen.read_text(encoding="utf-8"))
    before_it = set((scratch.tree / "tests/top/screens").iterdir())
    scratch.pytest("tests/top/test_screen_snapshots.py", WEFT_TOP_KEEP_SCREENS="1")
    for screen in set((scratch.tree / "tests/top/screens").iterdir()) - before_it:
        text = screen.read_text(encoding="utf-8")
        screen.unlink()
        scratch.write(screen.relative_to(scratch.tree).as_posix(), text)


def check_docs(scratch):
    run([scratch.tree / "scripts/generate_docs", "--check", "--program", weft_info(scratch)], cwd=scratch.tree)


# ---- A setting

def check_setting(scratch):
    need("WEFT_EXAMPLE_BYTES" in run([weft_info(scratch), "--env"]), "weft-info --env does not show the setting")
    check_docs(scratch)


SETTING = Kind(
    {"src/base/config.hpp": after("  std::string rail_policy;\n", "  std::uint64_t example_bytes = 0;\n"),
     "src/base/config.cpp": before('    Setting{"WEFT_GPU",', '    Setting{"WEFT_EXAMPLE_BYTES", &Config::example_bytes, "bytes", "4096", "",\n'
                                   '            "An example."},\n')},
    check_setting, {"docs/ENV.md": write_doc("docs/ENV.md")})


# ---- A rail policy

USES_POLICY = """
#include "src/transport/rails/policies.hpp"
int main() {
  return weft::transport::rails::find_policy("example")->name == "example" ? 0 : 1;
}
"""


def check_policy(scratch):
    objects = [scratch.compile(f"src/transport/rails/{name}.cpp") for name in ("policies", "by_count")]
    scratch.write("bench/uses_policy.cpp", USES_POLICY)
    run([scratch.link("bootstrap_probe", [*objects, scratch.compile("bench/uses_policy.cpp", "tests/programs/bootstrap_probe.cpp")], ["bootstrap_probe.cpp.o"])])
    check_docs(scratch)
    scratch.pytest("tests/top/test_screen_snapshots.py", "-k", "help")


POLICY = Kind(
    {"src/base/rail_policies.hpp": before("};\n\n}  // namespace weft", '    Choice{"example", "Rails in turn, each to the next rail of the peer."},\n'),
     "src/transport/rails/policies.cpp": after('    paired(by_bytes("aligned", is_same_index)),\n', '    by_count<next_index>("example", any_pair),\n'),
     "src/transport/rails/choosers.hpp": after("same_index(const PlanInput& input);\n", "[[nodiscard]] RailPair next_index(const PlanInput& input);\n"),
     "src/transport/rails/by_count.cpp": before("RailPair by_sum(", "RailPair next_index(const PlanInput& input) {\n  return {RailIndex(0), RailIndex("
                                                "static_cast<std::uint32_t>(input.counter % input.remote.size()))};\n}\n\n")},
    check_policy,
    {"docs/ENV.md": write_doc("docs/ENV.md"), "tools/top/weft_top/rail_policies.py": write_doc("tools/top/weft_top/rail_policies.py"),
     "tests/top/screens": keep_screens})


# ---- A transport: the example of the conformance suite, in the place of a real one

KIND = """
#include "src/runtime/transport_kinds.hpp"
#include "src/transport/example/example_transport.hpp"

namespace weft::runtime {

const TransportKind kExampleKind{
    .name = "example",
    .is_needed = [](const TransportSite&) { return false; },
    .reaches = [](const TransportSite& site) { return std::vector<bool>(site.bootstrap.pe_count()); },
    .make = [](const TransportSite& site) -> std::unique_ptr<transport::Transport> {
      return std::make_unique<transport::example::FileTransport>("/tmp", site.bootstrap.pe(), site.regions());
    }};

}  // namespace weft::runtime
"""
LISTS_KINDS = """
#include "src/runtime/transport_kinds.hpp"
int main() {
  for (const weft::runtime::TransportKind& kind : weft::runtime::transport_kinds()) {
    if (kind.name == "example") {
      return 0;
    }
  }
  return 1;
}
"""
SUITE = """
#include "src/transport/example/example_transport.hpp"
#include "tests/conformance/transport_suite.hpp"
"""


def as_real(text):
    text = text.replace("tests/conformance/toy/file_transport", "src/transport/example/example_transport")
    return text.replace("weft::test::toy", "weft::transport::example")


def check_transport(scratch):
    like = "src/runtime/cma_kind.cpp"
    objects = [scratch.compile("src/transport/example/example_transport.cpp", like), scratch.compile("src/runtime/example_kind.cpp", like),
               scratch.compile("src/runtime/transport_kinds.cpp")]
    scratch.write("bench/lists_kinds.cpp", LISTS_KINDS)
    run([scratch.link("bootstrap_probe", [*objects, scratch.compile("bench/lists_kinds.cpp", "tests/programs/bootstrap_probe.cpp")], ["bootstrap_probe.cpp.o"])])
    test = "tests/conformance/example_transport_test.cpp"
    need((scratch.tree / test).exists(), "the conformance suite does not run over it")
    scratch.compile(test, "tests/conformance/cma_transport_test.cpp")


TRANSPORT = Kind(
    {"src/transport/example/example_transport.hpp": as_real, "src/transport/example/example_transport.cpp": as_real,
     "src/runtime/example_kind.cpp": new_file(KIND),
     "src/runtime/transport_kinds.hpp": after("extern const TransportKind kCmaKind;\n", "extern const TransportKind kExampleKind;\n"),
     "src/runtime/transport_kinds.cpp": lambda text: replaced(text, "kKinds{kCmaKind, kRailsKind}", "kKinds{kCmaKind, kExampleKind, kRailsKind}"),
     "tests/conformance/example_transport_test.cpp": new_file(SUITE)},
    check_transport)
EXAMPLES = {"src/transport/example/example_transport.hpp": "tests/conformance/toy/file_transport.hpp",
            "src/transport/example/example_transport.cpp": "tests/conformance/toy/file_transport.cpp",
            "tools/perf/example.cpp": "tools/perf/barrier_latency.cpp"}


# ---- A collective

CALLS_COLLECTIVE = """
#include <weft/collectives.h>
#include <weft/weft.h>

int main() {
  if (weft_init() != WEFT_OK) {
    return 1;
  }
  int* words = static_cast<int*>(weft_malloc(2 * sizeof(int)));
  words[0] = 7;
  const bool done = weft_team_example(WEFT_TEAM_WORLD, words + 1, words, sizeof(int)) == WEFT_OK && words[1] == 7;
  weft_finalize();
  return done ? 0 : 2;
}
"""


def check_collective(scratch):
    objects = [scratch.compile("src/collectives/collectives.cpp"), scratch.compile("src/api/teams.cpp")]
    scratch.write("bench/calls_collective.cpp", CALLS_COLLECTIVE)
    program = scratch.link("bootstrap_probe", [*objects, scratch.compile("bench/calls_collective.cpp", "tests/programs/bootstrap_probe.cpp")], ["bootstrap_probe.cpp.o"])
    run([program], env={name: value for name, value in os.environ.items() if not name.startswith("WEFT_")} | {"WEFT_BOOTSTRAP": "single"})


COLLECTIVE = Kind(
    {"src/collectives/collectives.hpp": after("  static Status fcollect(Team& team, Sides sides, std::size_t bytes);\n",
                                              "  static Status example(Team& team, Sides sides, std::size_t bytes);\n"),
     "src/collectives/collectives.cpp": before("Status Collectives::collect(", "Status Collectives::example(Team& team, Sides sides, std::size_t bytes) {\n"
                                               "  return broadcast(team, sides, bytes, 0);\n}\n\n"),
     "include/weft/collectives.h": before("/* `source` of `root` ", "/* As a broadcast from PE 0 of the team. */\nWEFT_EXPORT int weft_team_example(weft_team_t team, "
                                          "void* dest, const void* source, size_t bytes);\n"),
     "src/api/teams.cpp": before("int weft_team_fcollect(", "int weft_team_example(weft_team_t team, void* dest, const void* source, size_t bytes) {\n"
                                 '  return with_sides("weft_team_example", team, {dest, bytes}, {source, bytes},\n'
                                 "                    [&](Team& object, Sides sides) { return Collectives::example(object, sides, bytes); });\n}\n\n")},
    check_collective)


# ---- A benchmark of weft-perf

def check_benchmark(scratch):
    sources = re.search(r"add_executable\(weft-perf (.*?)\)", scratch.read("tools/perf/CMakeLists.txt"), re.DOTALL).group(1).split()
    objects = [scratch.compile("tools/perf/benchmarks.cpp")]
    objects += [scratch.compile(f"tools/perf/{name}", "tools/perf/latency.cpp") for name in sources if name == f"{NAME}.cpp"]
    program = scratch.link("weft-perf", objects, ["weft_perf_parts.dir/benchmarks.cpp.o"])
    stand_in = scratch.compile("tests/support/perf_runs.cpp")
    need("run_example" in run(["nm", "-C", stand_in]), "tests/support/perf_runs.cpp does not define run_example")
    folder = program.parent / f"{program.name}-bin"
    folder.mkdir()
    (folder / "weft-perf").symlink_to(program)
    (folder / "weft-run").symlink_to(scratch.build_dir / "bin" / "weft-run")
    scratch.pytest("tests/multi/test_weft_perf.py", "-k", "every_benchmark or (each_subcommand_prints_json_lines and example)",
                   "--bin-dir", folder)


BENCHMARK = Kind(
    {"tools/perf/benchmarks.cpp": before('    Benchmark{.name = "barrier_latency",', '    Benchmark{.name = "example",\n              .help = "An example",\n'
                                         "              .pe_count_min = 1,\n              .defaults = kOfWord,\n              .run = run_example},\n"),
     "tools/perf/runs.hpp": after("void run_barrier_latency(const Run& run);\n", "void run_example(const Run& run);\n"),
     "tools/perf/example.cpp": lambda text: text.replace("run_barrier_latency", "run_example").replace("barrier_latency", "example"),
     "tools/perf/CMakeLists.txt": after("add_executable(weft-perf alltoall_latency.cpp", " example.cpp"),
     "tests/support/perf_runs.cpp": after("void run_barrier_latency(const Run& /*run*/) {}\n", "\nvoid run_example(const Run& /*run*/) {}\n"),
     "tests/multi/test_weft_perf.py": after('    "barrier_latency": [],\n', '    "example": [],\n'),
     "tools/perf/README.md": before("| `barrier_latency` |", "| `example` | an example | `weft-run -n 8 -- weft-perf example` |\n")},
    check_benchmark)


# ---- A view of weft-top

VIEW = '''"""An example."""

from .. import lines
from .page import Page


class ExampleView:
    name, title = "example", "Example"

    def page(self, state, width, height):
        return Page((), ["one", "two"], lambda row: ((lines.fit(row, width), ""),), has_cursor=False)
'''


def check_view(scratch):
    scratch.pytest("tests/top/test_screen_snapshots.py")


VIEW_OF_TOP = Kind(
    {"tools/top/weft_top/screen/views/example.py": new_file(VIEW),
     "tools/top/weft_top/screen/views/__init__.py": lambda text: replaced(
         replaced(text, "from .help import HelpView\n", "from .example import ExampleView\nfrom .help import HelpView\n"), "EventsView())\nNIC_KEY",
         "EventsView(), ExampleView())\nNIC_KEY"),
     "tools/top/weft_top/screen/surround.py": after("KEYS = {\n", '    "example": ["q quit"],\n'),
     "tools/top/weft_top/screen/views/help.py": after("who sends to whom, events", ", more"),
     "tests/top/test_screen_snapshots.py": after('    "events-hostile": ("hostile", ["5"]),\n', '    "example": ("coupled", ["6"]),\n')},
    check_view, {"tests/top/screens": keep_screens})

KINDS = {"A setting": SETTING, "A rail policy": POLICY, "A transport": TRANSPORT, "A collective": COLLECTIVE,
         "A benchmark of weft-perf": BENCHMARK, "A view of weft-top": VIEW_OF_TOP}
