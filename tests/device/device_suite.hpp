// What the programs of this suite share: DEVICE_TEST registers a case, fail and skip end it with a
// reason, main (device_suite.cu) runs all cases on all PEs in one order. On the public API alone.
//
//   weft-run -n N [--node-size K] -- device_rma_test [--seed S] [--scale X] [--json FILE] [--only
//   TEXT]
//
// PE 0 prints for each case `PASS name`, `FAIL name: why` or `SKIP name: why`, and appends a line
// to FILE. Status: 0, 1 if a case failed, 77 without a GPU. Threads: the main thread alone.
#pragma once

#include <cstdint>
#include <string>

namespace suite {

struct Options {
  std::uint64_t seed = 1;
  double scale = 1;  // of all counts of rounds
  std::string json;
  std::string only;  // a part of the names to run
};

[[nodiscard]] const Options& options();
[[nodiscard]] int me();
[[nodiscard]] int pe_count();
// Several PEs have one GPU, and their kernels take turns: a wait for a peer costs milliseconds.
[[nodiscard]] bool is_shared();

// `count` by --scale, at least `least`. turns: of rounds in which PEs wait for each other, far
// fewer where a GPU is shared.
[[nodiscard]] std::uint32_t rounds(double count, std::uint32_t least = 4);
[[nodiscard]] std::uint32_t turns(double count, std::uint32_t least = 4);

// The running case's.
[[nodiscard]] const char* name();
// This case's own seed: the same on all PEs.
[[nodiscard]] std::uint64_t seed();

// The case has failed; the first reason of each PE is kept. It goes on: all PEs make the same
// calls.
void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));
// It cannot be run here; all PEs must come to that conclusion.
void skip(const char* reason);

// Waits for this PE's kernels, then for all PEs. A kernel that ended early ends the program with
// its record.
void finish(const char* what);
// The program ends unless `status` is that of success.
void require_cuda(int status, const char* what);
void require_weft(int status, const char* what);
void require(bool is_so, const char* what);

struct Case {
  const char* name;
  void (*run)();
  Case* next = nullptr;
};

struct Registration {
  explicit Registration(Case& added);
};

}  // namespace suite

// A case: DEVICE_TEST(name_of_function, "what it shows") { ... }
#define DEVICE_TEST(function, title)                                 \
  static void function();                                            \
  static suite::Case case_##function{title, &function};              \
  static suite::Registration registered_##function{case_##function}; \
  static void function()
