// One program of many links: files of one device link, a static and a shared library that are
// device-linked apart, and a shared library without -rdc that is opened late. Each sees the job.
#include <dlfcn.h>

#include "tests/device/nvshmem/tools.cuh"

extern "C" {
int part_a(int* word);
int part_b(int* word);
int part_static(int* word);
int part_shared(int* word);
}

namespace {

using Part = int (*)(int*);

void expect(const char* what, Part part) {
  suite::Symmetric<int> word(1);
  const int seen = part == nullptr ? -2 : part(word.get());
  if (seen != suite::me()) {
    suite::fail("%s: %d", what, seen);
  }
  suite::finish(what);
}

DEVICE_TEST(one_link, "files of one device link") {
  expect("a", &part_a);
  expect("b", &part_b);
}

DEVICE_TEST(apart, "libraries that are device-linked apart") {
  expect("static", &part_static);
  expect("shared", &part_shared);
}

DEVICE_TEST(late, "a library that is opened late") {
  void* library = ::dlopen(LATE_LIBRARY, RTLD_NOW);
  if (library == nullptr) {
    suite::fail("%s", ::dlerror());
  }
  expect("late",
         library == nullptr ? nullptr : reinterpret_cast<Part>(::dlsym(library, "part_late")));
}

}  // namespace
