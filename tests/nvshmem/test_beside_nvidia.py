"""Extensions that are linked against the prefix live in a process that holds NVIDIA's NVSHMEM, as torch's wheel brings it: a
stand-in has NVIDIA's SONAME and version node, and a library that is linked to it, as torch's own is."""
import shutil
import sys

import pytest

from nvshmem_runs import HOST_MEMORY, PROGRAMS, run, well

THEIRS = """
    int nvshmem_my_pe(void) { return 4242; }
    int nvshmemx_init_status(void) { return 4243; }
    void nvshmem_info_get_name(char* name) { __builtin_strcpy(name, "stand-in"); }
    """
TORCH = """
    int nvshmem_my_pe(void); int nvshmemx_init_status(void); void nvshmem_info_get_name(char*);
    int torch_pe(void) { return nvshmem_my_pe(); }
    int torch_status(void) { return nvshmemx_init_status(); }
    void torch_name(char* name) { nvshmem_info_get_name(name); }
    """
PROGRAM = """
import ctypes, sys
torch_path, ours_path, order, mode = sys.argv[1:]
opened = {}
for which in order.split():
    opened[which] = ctypes.CDLL({"torch": torch_path, "ours": ours_path}[which], getattr(ctypes, mode))
def name(library, function):
    text = ctypes.create_string_buffer(256)
    getattr(library, function)(text)
    return text.value.decode()
torch, ours = opened["torch"], opened["ours"]
assert name(torch, "torch_name") == "stand-in" and torch.torch_pe() == 4242 and torch.torch_status() == 4243
assert name(ours, "ours_name").startswith("Weft") and ours.ours_status() == 0, name(ours, "ours_name")
assert ours.ours_job() == 1
assert name(torch, "torch_name") == "stand-in" and torch.torch_pe() == 4242
print("both")
"""
LINKS = {"by the linker's name": ["-lnvshmem_host"], "by the file": ["-l:libnvshmem_host.so.3"], "by the old name": ["-lnvshmem"],
         "with the bootstrap": ["-lnvshmem_host", "-Wl,--no-as-needed", "-l:nvshmem_bootstrap_uid.so"]}


@pytest.fixture(scope="module")
def torch_library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "theirs.c").write_text(THEIRS)
    (folder / "torch.c").write_text(TORCH)
    (folder / "theirs.map").write_text("NVSHMEM { global: nvshmem_*; nvshmemx_*; nvshmemid_*; local: *; };\n")
    well("gcc", "-shared", "-fPIC", folder / "theirs.c", "-Wl,-soname,libnvshmem_host.so.3", f"-Wl,--version-script={folder / 'theirs.map'}",
         "-o", folder / "libnvshmem_host.so.3")
    well("gcc", "-shared", "-fPIC", folder / "torch.c", f"-L{folder}", "-l:libnvshmem_host.so.3", f"-Wl,-rpath,{folder}", "-o", folder / "libtorch_nvshmem.so")
    return folder / "libtorch_nvshmem.so"


def extension(prefix, folder, *libraries):
    well("gcc", "-shared", "-fPIC", f"-I{prefix}/include", PROGRAMS / "extension.c", f"-L{prefix}/lib", *libraries, f"-Wl,-rpath,{prefix}/lib", "-o", folder / "ours.so")
    return folder / "ours.so"


@pytest.fixture(scope="module")
def wheel_prefix(prefix, tmp_path_factory):
    """The prefix as a wheel has it, without links: a filter has the name of libnvshmem_host.so.3."""
    folder = tmp_path_factory.mktemp("wheel") / "nvshmem"
    (folder / "lib").mkdir(parents=True)
    (folder / "include").symlink_to(prefix / "include")
    for name in ("libweft_nvshmem_host.so.3", "weft_nvshmem_bootstrap_uid.so.3", "libnvshmem.a"):
        shutil.copy(prefix / "lib" / name, folder / "lib" / name)
    shutil.copy(prefix.parent / "nvshmem_filter" / "libnvshmem_host.so.3", folder / "lib")
    shutil.copy(prefix / "lib" / "weft_nvshmem_bootstrap_uid.so.3", folder / "lib" / "nvshmem_bootstrap_uid.so.3")
    for name in ("libnvshmem_host", "nvshmem_bootstrap_uid"):
        (folder / "lib" / f"{name}.so").write_text(f"INPUT({name}.so.3)\n")
    return folder


@pytest.fixture(params=["installed", "wheel"])
def any_prefix(request, prefix):
    return prefix if request.param == "installed" else request.getfixturevalue("wheel_prefix")


@pytest.mark.parametrize("mode", ["RTLD_LOCAL", "RTLD_GLOBAL"])
@pytest.mark.parametrize("order", ["torch ours", "ours torch"])
@pytest.mark.parametrize("link", LINKS)
def test_an_extension_lives_beside_nvidias_library(any_prefix, torch_library, tmp_path, link, order, mode):
    ours = extension(any_prefix, tmp_path, *LINKS[link])
    assert well(sys.executable, "-c", PROGRAM, torch_library, ours, order, mode, **HOST_MEMORY) == "both\n"


def test_what_links_to_it_names_only_libraries_that_are_wefts(any_prefix, tmp_path):
    needed = well("readelf", "-d", extension(any_prefix, tmp_path, *LINKS["with the bootstrap"]))
    assert "[libweft_nvshmem_host.so.3]" in needed and "[weft_nvshmem_bootstrap_uid.so.3]" in needed
    assert "[libnvshmem_host.so.3]" not in needed and "[nvshmem_bootstrap_uid.so.3]" not in needed


@pytest.mark.parametrize("order", ["name ours", "ours name"])
def test_who_opens_nvshmems_name_gets_the_library_that_extensions_have(any_prefix, tmp_path, order):
    """As PyTorch built from source, JAX and nvshmem4py do, where LD_LIBRARY_PATH leads to the prefix: one library, so one job."""
    program = """
import ctypes, sys
opened = {which: ctypes.CDLL({"name": "libnvshmem_host.so.3", "ours": sys.argv[1]}[which]) for which in sys.argv[2].split()}
opened["name"].nvshmem_init()
print(opened["name"].nvshmemx_init_status() == opened["ours"].ours_status() != 0)
opened["name"].nvshmem_finalize()
"""
    ours = extension(any_prefix, tmp_path, "-lnvshmem_host")
    assert well(sys.executable, "-c", program, ours, order, LD_LIBRARY_PATH=str(any_prefix / "lib"), **HOST_MEMORY) == "True\n"


def test_a_binary_with_nvidias_device_library_is_refused_by_the_loader(any_prefix, torch_library):
    """LD_LIBRARY_PATH precedes its RUNPATH, so it finds Weft's file, which has no symbols of NVIDIA's version."""
    done = run(sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", torch_library, LD_LIBRARY_PATH=str(any_prefix / "lib"))
    assert done.returncode != 0 and "version `NVSHMEM' not found" in done.stderr, done.stderr


def test_binaries_of_earlier_versions_find_it(any_prefix, tmp_path):
    """Linked when its SONAME was NVSHMEM's."""
    (tmp_path / "old.c").write_text("int nvshmemx_init_status(void) { return -1; }\n")
    (tmp_path / "old.map").write_text("WEFT_NVSHMEM_3 { global: nvshmem*; local: *; };\n")
    well("gcc", "-shared", "-fPIC", tmp_path / "old.c", "-Wl,-soname,libnvshmem_host.so.3", f"-Wl,--version-script={tmp_path / 'old.map'}", "-o", tmp_path / "old.so")
    (tmp_path / "main.c").write_text("int nvshmemx_init_status(void);\nint main(void) { return nvshmemx_init_status(); }\n")
    well("gcc", tmp_path / "main.c", tmp_path / "old.so", f"-Wl,-rpath,{any_prefix}/lib", "-o", tmp_path / "main")
    assert run(tmp_path / "main").returncode == 0
