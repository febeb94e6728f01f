/* What tests use besides the runner; see suite.h. */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "tests/openshmem/suite.h"

int suite_me;
int suite_pe_count;

int suite_right(void) {
  return (suite_me + 1) % suite_pe_count;
}

int suite_left(void) {
  return (suite_me + suite_pe_count - 1) % suite_pe_count;
}

/* splitmix64 by Vigna, public domain. */
uint64_t suite_random_of(uint64_t seed) {
  uint64_t z = seed + UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

void suite_dawdle(int round) {
  const uint64_t seed = (uint64_t)suite_me * 1000 + (uint64_t)round;
  const struct timespec pause = {0, (long)(suite_random_of(seed) % 2000000)};
  nanosleep(&pause, NULL);
}
