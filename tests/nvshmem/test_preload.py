"""The files that NVSHMEM opens as its transport: preloaded, they are taken in place of those beside its host library; in all other
programs they do nothing."""
import importlib.util
import os
import pathlib
import sys

import pytest

import emulated_host
from emulated_host import INTERFACES
from nvshmem_runs import run, well


@pytest.fixture(scope="module")
def weft(bin_dir, tmp_path_factory):
    return emulated_host.installation(tmp_path_factory.mktemp("weft") / "prefix", bin_dir)


@pytest.fixture(scope="module")
def switched_on(weft):
    """The variables that the printed lines set."""
    text = well("bash", "-c", f'eval "$({weft}/bin/weft-nvshmem --plugin)" && echo "$LD_PRELOAD" && echo "$NVSHMEM_REMOTE_TRANSPORT"', LD_PRELOAD="")
    preload, transport = text.splitlines()
    assert transport == "libfabric"
    return {"LD_PRELOAD": preload, "NVSHMEM_REMOTE_TRANSPORT": transport}


@pytest.fixture(scope="module")
def stubs(weft):
    return [weft / "lib" / "weft" / "nvshmem" / "transport" / f"nvshmem_transport_libfabric.so.{number}" for number in INTERFACES]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("theirs")
    return emulated_host.program(folder / "program", emulated_host.host(folder / "lib"))


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_host_library_with_rpath_takes_ours_when_it_is_preloaded_and_its_own_otherwise(program, weft, switched_on, interface):
    assert well(program, interface) == f"{1000 + interface}\n"
    assert well(program, interface, LD_LIBRARY_PATH=str(weft / "lib" / "weft" / "nvshmem" / "transport")) == f"{1000 + interface}\n"
    assert well(program, interface, **switched_on) == f"{100 + interface}\n"


def test_a_program_that_is_linked_statically_takes_ours_too(tmp_path, switched_on):
    emulated_host.host(tmp_path / "lib")
    program = emulated_host.static_program(tmp_path / "lib" / "program")
    assert well(program, 5) == "1005\n"
    assert well(program, 5, **switched_on) == "105\n"


def test_a_link_to_a_stub_finds_the_plugin(tmp_path, program, stubs):
    """As a user may have put one over a wheel's file."""
    (tmp_path / stubs[-1].name).symlink_to(stubs[-1])
    assert well(program, 7, LD_PRELOAD=str(tmp_path / stubs[-1].name)) == "107\n"


def test_other_programs_run_as_before(switched_on):
    done = run("/bin/true", **switched_on)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_stub_needs_libc_alone_exports_one_name_and_starts_nothing(stubs):
    for stub in stubs:
        dynamic = well("readelf", "--dynamic", "--wide", stub)
        assert [line.split("[")[1].rstrip("]") for line in dynamic.splitlines() if "(NEEDED)" in line] == ["libc.so.6"]
        assert f"[{stub.name}]" in dynamic and not any(word in dynamic for word in ("(INIT", "(FINI", "(RPATH)", "(RUNPATH)"))
        names = well("nm", "--dynamic", "--defined-only", "--format=posix", stub).splitlines()
        assert [name.split()[0] for name in names] == ["nvshmemt_init"]


@pytest.mark.parametrize("plugin, what", [(None, "cannot open shared object file"), ("int other(void) { return 0; }\n", "undefined symbol: weft_nvshmemt_init")])
def test_a_plugin_that_cannot_be_used_is_one_sentence_and_no_transport(bin_dir, tmp_path, program, plugin, what):
    weft = emulated_host.installation(tmp_path / "prefix", bin_dir)
    (weft / "lib" / "libweft_nvshmem_transport.so").unlink()
    if plugin:
        emulated_host.shared(weft / "lib", "libweft_nvshmem_transport.so", plugin)
    done = run(program, 6, LD_PRELOAD=str(weft / "lib" / "weft" / "nvshmem" / "transport" / "nvshmem_transport_libfabric.so.6"))
    assert done.stdout == "1\n" and done.stderr.count("\n") == 1
    assert done.stderr.startswith("weft: NVSHMEM gets no remote transport: ") and what in done.stderr and "libweft_nvshmem_transport.so" in done.stderr


# ---- NVIDIA's own libraries, without a GPU.


@pytest.fixture(scope="module")
def nvidia():
    """The folder of an installed NVSHMEM."""
    found = importlib.util.find_spec("nvidia") and importlib.util.find_spec("nvidia.nvshmem")
    folders = [pathlib.Path(place) / "lib" for place in (found.submodule_search_locations if found else [])]
    folders = [folder for folder in folders if (folder / "libnvshmem_host.so.3").exists()]
    return folders[0] if folders else pytest.skip("no NVSHMEM: pip install nvidia-nvshmem-cu12, or -cu13")


def test_in_the_search_path_of_nvidias_host_library_ours_is_taken(nvidia, tmp_path, switched_on):
    """Its own transport lies beside it, and is what is opened otherwise, where the libraries that it needs are there."""
    assert "Library rpath: [${ORIGIN}]" in well("readelf", "--dynamic", nvidia / "libnvshmem_host.so.3")
    (own,) = nvidia.glob("nvshmem_transport_libfabric.so.*")
    opener = emulated_host.shared(tmp_path, "opener.so", f'#include <dlfcn.h>\nvoid* open_it(void) {{ return dlopen("{own.name}", RTLD_NOW); }}\n',
                                  f"-Wl,--disable-new-dtags,-rpath,{nvidia}")
    text = ("import ctypes, sys; ctypes.CDLL(sys.argv[1]); opener = ctypes.CDLL(sys.argv[2]); opener.open_it.restype = ctypes.c_void_p\n"
            "opened = opener.open_it()\nprint(bool(opened), sorted({line.split()[-1] for line in open('/proc/self/maps') if sys.argv[3] in line}))")
    command = (sys.executable, "-c", text, nvidia / "libnvshmem_host.so.3", opener, own.name)
    assert well(*command) in (f"True {[os.path.realpath(own)]}\n", "False []\n")
    (ours,) = [path for path in switched_on["LD_PRELOAD"].split(":") if path.endswith(own.name)]
    assert well(*command, **switched_on) == f"True {[os.path.realpath(ours)]}\n"


def test_nvidias_host_library_itself_takes_what_is_preloaded(nvidia, tmp_path):
    """By way of the bootstrap, which it opens by the same means, and without a GPU: nvshmemx_get_uniqueid."""
    dummy = emulated_host.shared(tmp_path, "dummy.so", "int nothing;\n", "-Wl,-soname,nvshmem_bootstrap_uid.so.3")
    text = ("import ctypes, sys; ctypes.CDLL(sys.argv[1]).nvshmemx_get_uniqueid(ctypes.create_string_buffer(4096))\n"
            "print('nvshmem_bootstrap_uid' in open('/proc/self/maps').read())")
    assert well(sys.executable, "-c", text, nvidia / "libnvshmem_host.so.3").endswith("True\n")
    assert well(sys.executable, "-c", text, nvidia / "libnvshmem_host.so.3", LD_PRELOAD=str(dummy)).endswith("False\n")
