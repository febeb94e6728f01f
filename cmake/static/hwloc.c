/* What libhwloc.a, linked into libweft, finds under names that cmake/libraries.cmake gave: three
   variables of libc, which a library cannot reach from code that was compiled for programs; no
   libudev, without which hwloc reads the same from /run/udev; and no plugins, which are built for
   the system's own hwloc. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdio.h>

FILE* weft_hwloc_stdout;
FILE* weft_hwloc_stderr;
char* weft_hwloc_program_invocation_name;

__attribute__((constructor)) static void set_variables(void) {
  weft_hwloc_stdout = stdout;
  weft_hwloc_stderr = stderr;
  weft_hwloc_program_invocation_name = program_invocation_name;
}

void* weft_hwloc_dlopen(const char* file, int mode) {
  (void)file;
  (void)mode;
  return NULL;
}

void* weft_hwloc_udev_new(void) {
  return NULL;
}

void* weft_hwloc_udev_unref(void* udev) {
  (void)udev;
  return NULL;
}

void* weft_hwloc_udev_device_new_from_subsystem_sysname(void* udev,
                                                        const char* subsystem,
                                                        const char* name) {
  (void)udev;
  (void)subsystem;
  (void)name;
  return NULL;
}

const char* weft_hwloc_udev_device_get_property_value(void* device, const char* key) {
  (void)device;
  (void)key;
  return NULL;
}

void* weft_hwloc_udev_device_unref(void* device) {
  (void)device;
  return NULL;
}
