// Global and static variables of the program as symmetric objects (WEFT_SYMMETRIC_GLOBALS=yes):
// put, get, atomics, signals and collectives on .data and .bss, initial values kept, and a clear
// word for stack memory. Prints "globals ok" from PE 0.
#include <weft/weft.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::int64_t initialised = 4711;
std::int64_t untouched[100'000];
std::uint64_t signal_word;
double sum = 0;
double addend = 0;

void require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "PE %d: %s (%s)\n", weft_pe(), what, weft_last_error());
    weft_global_exit(1);
  }
}

}  // namespace

int main() {
  static std::int64_t counter = 7;
  require(weft_init() == WEFT_OK, "weft_init");
  const int me = weft_pe();
  const int count = weft_pe_count();
  const int next = (me + 1) % count;
  const int previous = (me + count - 1) % count;
  require(initialised == 4711 && counter == 7 && untouched[99'999] == 0, "initial values");
  weft_barrier_all();

  require(weft_int64_p(&initialised, 100 + me, next) == WEFT_OK, "p");
  require(weft_int64_atomic_fetch_add(&counter, 1, 0) >= 7, "fetch_add");
  const std::int64_t value = 1000 + me;
  const weft_signal arrived = {&signal_word, 1, WEFT_SIGNAL_SET};
  require(weft_put_signal(&untouched[99'000], &value, sizeof value, arrived, next) == WEFT_OK,
          "put_signal");
  require(weft_signal_wait_until(&signal_word, WEFT_EQ, 1, nullptr) == WEFT_OK, "wait");
  require(untouched[99'000] == 1000 + previous, "the data of put_signal");
  weft_barrier_all();
  require(initialised == 100 + previous, "the value of p");
  require(weft_int64_g(&initialised, next) == 100 + me, "g");
  require(me != 0 || counter == 7 + count, "the sum of atomics");

  addend = me + 1;
  require(weft_team_reduce(WEFT_TEAM_WORLD, &sum, &addend, {WEFT_DOUBLE, 1}, WEFT_SUM) == WEFT_OK,
          "reduce");
  require(sum == count * (count + 1) / 2.0, "the sum");

  std::int64_t local = 0;
  require(weft_int64_p(&local, 1, next) == WEFT_INVALID_ARGUMENT, "the stack is not symmetric");
  require(std::strstr(weft_last_error(), "is not symmetric") != nullptr, "the sentence");
  weft_barrier_all();
  if (me == 0) {
    std::puts("globals ok");
  }
  return weft_finalize() == WEFT_OK ? 0 : 1;
}
