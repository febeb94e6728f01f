/* The file that NVSHMEM opens as its remote transport "libfabric": it hands over to Weft's plugin.
 *
 * One for each interface number N, with the SONAME nvshmem_transport_libfabric.so.N: the loader
 * takes a library that is already loaded by its SONAME, before it searches files, so whoever
 * preloads this one replaces NVIDIA's. That puts it into every process of a job, shells included.
 * So it needs libc alone, has no constructor, and does nothing before NVSHMEM calls it.
 *
 * Thread: NVSHMEM calls it once, from its init. Nothing is kept here: a second call does no harm.
 * docs/decisions/0030-nvshmem-remote-transport-plugin.md says why.
 */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Stubs are in LIB/weft/nvshmem/transport, the plugin is in LIB: installed, in a wheel, and in a
 * build folder. */
static const char kPluginFromHere[] = "../../../libweft_nvshmem_transport.so";

/* NVSHMEM's own signature: the object that the plugin makes, the host's table of CUDA functions,
 * and the interface number * 10000. 0 is success. */
typedef int (*Init)(void** object, void* cuda_functions, int number);

static int fail(const char* what) {
  fprintf(
      stderr,
      "weft: NVSHMEM gets no remote transport: %s; install Weft again, or take Weft's files out "
      "of LD_PRELOAD for NVSHMEM's own transport\n",
      what);
  return 1;
}

/* The folder of this file, through links, into `folder`; null if it cannot be told. Asks by the
 * address of something static: all stubs export one name, and the first of them would answer. */
static const char* find_folder(char folder[PATH_MAX]) {
  Dl_info here;
  if (dladdr(kPluginFromHere, &here) == 0 || realpath(here.dli_fname, folder) == NULL) {
    return NULL;
  }
  *strrchr(folder, '/') = '\0';
  return folder;
}

/* What dlopen is given: the shortest path, if the file is there. */
static const char* find_plugin(char path[PATH_MAX]) {
  char folder[PATH_MAX];
  char named[PATH_MAX + sizeof kPluginFromHere];
  if (find_folder(folder) == NULL) {
    return NULL;
  }
  snprintf(named, sizeof named, "%s/%s", folder, kPluginFromHere);
  if (realpath(named, path) == NULL) {
    snprintf(path, PATH_MAX, "%.*s", PATH_MAX - 1, named);
  }
  return path;
}

/* Whether the number is one that Weft supports is the plugin's to say. */
__attribute__((visibility("default"))) int nvshmemt_init(void** object,
                                                         void* cuda_functions,
                                                         int number) {
  char path[PATH_MAX];
  if (find_plugin(path) == NULL) {
    return fail("the folder of Weft's files is not known, so preload them by their whole paths");
  }
  void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) {
    return fail(dlerror()); /* names the file */
  }
  Init init;
  *(void**)&init = dlsym(plugin, "weft_nvshmemt_init");
  if (init == NULL) {
    return fail(dlerror());
  }
  return init(object, cuda_functions, number);
}
