"""NVSHMEM as the loader sees it, without NVSHMEM: a host library with DT_RPATH that opens its transport by name, as the released
ones do (docs/decisions/0030-nvshmem-remote-transport-plugin.md), the transport that comes with it, and a stand-in for Weft's plugin."""
import shutil

from nvshmem_runs import well

# Also of a program that is linked with it statically. "NVSHMEM v" and the name of the transports
# are in the released libraries as text.
HOST = r"""
#include <dlfcn.h>
#include <stdio.h>
const char* version = "NVSHMEM v%(release)s";
int emulated_init(int interface) {
  char name[64];
  snprintf(name, sizeof name, "nvshmem_transport_%%s.so.%%d", "libfabric", interface);
  void* transport = dlopen(name, RTLD_NOW);
  int (*init)(void**, void*, int) = transport ? dlsym(transport, "nvshmemt_init") : 0;
  void* object;
  return init ? init(&object, 0, interface * 10000) : -1;
}
"""
MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
int emulated_init(int);
int main(int count, char** words) { printf("%d\n", emulated_init(atoi(words[count - 1]))); }
"""
# What each answers to interface N: 1000 + N is NVSHMEM's own, 100 + N is Weft's.
DECOY = "int nvshmemt_init(void** object, void* functions, int number) { return 1000 + number / 10000; }\n"
PLUGIN = "int weft_nvshmemt_init(void** object, void* functions, int number) { return 100 + number / 10000; }\n"
INTERFACES = (3, 4, 5, 6, 7)


def shared(folder, name, text, *flags):
    source = folder / f"{name}.c"
    source.write_text(text)
    well("cc", "-shared", "-fPIC", source, *flags, "-o", folder / name, "-ldl")
    source.unlink()
    return folder / name


def host(folder, release="3.8.0", interfaces=INTERFACES, paths="-Wl,--disable-new-dtags"):
    """A host library in a folder of its own, with a transport for each interface beside it."""
    folder.mkdir(parents=True)
    for number in interfaces:
        shared(folder, f"nvshmem_transport_libfabric.so.{number}", DECOY)
    return shared(folder, "libnvshmem_host.so.3", HOST % {"release": release}, "-Wl,-soname,libnvshmem_host.so.3", paths, "-Wl,-rpath,$ORIGIN")


def program(path, host_library):
    """Prints what the transport says for the interface that its last argument names."""
    source = path.with_suffix(".c")
    source.write_text(MAIN)
    well("cc", source, host_library, f"-Wl,--disable-new-dtags,-rpath,{host_library.parent}", "-o", path)
    return path


def static_program(path, release="3.8.0"):
    """With the host library in it; what it opens is found through DT_RPATH beside it."""
    source = path.with_suffix(".c")
    source.write_text(HOST % {"release": release} + MAIN)
    well("cc", source, "-Wl,--disable-new-dtags,-rpath,$ORIGIN", "-o", path, "-ldl")
    return path


def installation(folder, bin_dir):
    """Weft as it lies in an installation: the build's script and stubs, and the stand-in in the place of the plugin."""
    stubs = folder / "lib" / "weft" / "nvshmem" / "transport"
    shutil.copytree(bin_dir.parent / "lib" / "weft" / "nvshmem" / "transport", stubs)
    (folder / "bin").mkdir()
    shutil.copy(bin_dir / "weft-nvshmem", folder / "bin")
    shared(folder / "lib", "libweft_nvshmem_transport.so", PLUGIN)
    return folder
