// The OpenSHMEM suite by NVSHMEM's names (tests/nvshmem/renamed_suite.py) as cases of the device
// suite, on memory of the GPU, which its tests reach by shadows. This file stands for
// tests/openshmem/suite.c and main.c.
//
// Threads: the main thread alone.
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <nvshmem.h>

#define SUITE_WITHOUT_CALLS
#include "suite.h"
#include "tests/device/device_suite.hpp"
#include "tests/nvshmem/shadow/shadow.h"

namespace {

constexpr int kErrorsShown = 5;

// Tests register before main, so they are made when they are first asked for.
std::map<std::string, suite_test*>& tests() {
  static std::map<std::string, suite_test*> all;
  return all;
}

// The symmetric memory of the running test, as shadows.
std::vector<void*>& taken() {
  static std::vector<void*> all;
  return all;
}

int error_count = 0;

void meet() {
  shadow_push();
  nvshmem_barrier_all();
  shadow_return(0);
  shadow_pull();
}

// Before the first test. What suite_close would free, goes with the job.
void open_suite() {
  suite_me = suite::me();
  suite_pe_count = suite::pe_count();
  if (suite_open != nullptr) {
    suite_open();
  }
}

void run_test() {
  static bool is_open = false;
  if (!is_open) {
    is_open = true;
    open_suite();
  }
  error_count = 0;
  tests().at(suite::name())->run();
  meet();
  for (; !taken().empty(); taken().pop_back()) {
    nvshmem_free(shadow_removed(taken().back()));
  }
}

void fail(const suite_place& place, const std::string& what) {
  if (++error_count <= kErrorsShown) {
    std::fprintf(stderr, "%s:%d: PE %d: %s\n", place.file, place.line, suite_me, what.c_str());
  }
  suite::fail("%s:%d: %s", place.file, place.line, what.c_str());
}

}  // namespace

void suite_register(suite_test* test) {
  tests()[test->name] = test;
  static_cast<void>(suite::Registration(*new suite::Case{test->name, &run_test}));
}

void* suite_symmetric(size_t bytes) {
  void* shadow = shadow_added(nvshmem_calloc(1, bytes), bytes);
  suite::require(shadow != nullptr, "nvshmem_calloc");
  taken().push_back(shadow);
  return shadow;
}

void suite_skip(const char* reason) {
  suite::skip(reason);
}

void suite_fail(suite_place place, const char* why) {
  fail(place, std::string(place.text) + ' ' + why);
}

void suite_expect_equal(suite_place place, long double expected, long double got) {
  char numbers[128];
  std::snprintf(numbers, sizeof numbers, "expected %.20Lg, got %.20Lg", expected, got);
  fail(place, std::string(place.text) + ": " + numbers);
}
