/* Runs the registered tests; see suite.h. */
#include "tests/openshmem/suite.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { FAILURES_SHOWN_MAX = 5, ALIGNMENT = 64 };

static const size_t kArenaBytes = (size_t)1 << 20;

static suite_test* first_test;
static suite_test** last_link = &first_test;

static pthread_mutex_t failure_lock = PTHREAD_MUTEX_INITIALIZER;
static int failure_count;
static const char* skip_reason;

static char* arena;
static size_t arena_used;
static int* failures_of_pes; /* on PE 0: of each */

void suite_register(suite_test* test) {
  *last_link = test;
  last_link = &test->next;
}

void* suite_symmetric(size_t bytes) {
  char* start = arena + arena_used;
  const size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (rounded > kArenaBytes - arena_used) {
    fprintf(stderr, "the suite's arena is too small for %zu bytes more\n", bytes);
    shmem_global_exit(3);
  }
  arena_used += rounded;
  return start;
}

void suite_skip(const char* reason) {
  skip_reason = reason;
}

/* Counts the failure; whether it is one of the first, which are shown. */
static int count_failure(void) {
  pthread_mutex_lock(&failure_lock);
  const int is_shown = failure_count++ < FAILURES_SHOWN_MAX;
  pthread_mutex_unlock(&failure_lock);
  return is_shown;
}

void suite_fail(suite_place place, const char* why) {
  if (count_failure()) {
    fprintf(stderr, "%s:%d: PE %d: %s %s\n", place.file, place.line, suite_me, place.text, why);
  }
}

void suite_expect_equal(suite_place place, long double expected, long double got) {
  if (count_failure()) {
    fprintf(stderr, "%s:%d: PE %d: %s: expected %.20Lg, got %.20Lg\n", place.file, place.line,
            suite_me, place.text, expected, got);
  }
}

static void say(const char* word, const suite_test* test, const char* rest) {
  if (suite_me == 0) {
    printf("%s %s%s\n", word, test->name, rest);
    fflush(stdout);
  }
}

/* On PE 0, after a barrier: whether any PE failed; prints the result. */
static int report(const suite_test* test) {
  int failed_pes = 0;
  for (int pe = 0; pe < suite_pe_count; ++pe) {
    failed_pes += failures_of_pes[pe] > 0;
  }
  if (failed_pes > 0) {
    char rest[64];
    snprintf(rest, sizeof rest, " (on %d of %d PEs)", failed_pes, suite_pe_count);
    say("FAILED", test, rest);
  } else if (skip_reason) {
    char rest[200];
    snprintf(rest, sizeof rest, ": %s", skip_reason);
    say("skipped", test, rest);
  } else {
    say("ok", test, "");
  }
  return failed_pes > 0;
}

static int run(const suite_test* test) {
  failure_count = 0;
  skip_reason = NULL;
  say("begin", test, "");
  test->run();
  shmem_int_p(&failures_of_pes[suite_me], failure_count, 0);
  shmem_barrier_all();
  const int failed = suite_me == 0 && report(test);
  memset(arena, 0, arena_used);
  arena_used = 0;
  shmem_barrier_all();
  return failed;
}

static void take_arena(void) {
  suite_me = shmem_my_pe();
  suite_pe_count = shmem_n_pes();
  arena = shmem_align(ALIGNMENT, kArenaBytes);
  failures_of_pes = shmem_calloc((size_t)suite_pe_count, sizeof *failures_of_pes);
  if (!arena || !failures_of_pes) {
    fprintf(stderr, "PE %d: no symmetric memory for the suite\n", suite_me);
    shmem_global_exit(3);
  }
  memset(arena, 0, kArenaBytes);
  shmem_barrier_all();
}

int suite_main(int argc, char** argv) {
  int ran = 0;
  int failed = 0;
  take_arena();
  if (suite_open) {
    suite_open();
  }
  for (const suite_test* test = first_test; test; test = test->next) {
    if (argc < 2 || strstr(test->name, argv[1])) {
      failed += run(test);
      ++ran;
    }
  }
  if (suite_me == 0) {
    printf("done: %d tests, %d failed, %d PEs\n", ran, failed, suite_pe_count);
    fflush(stdout);
  }
  if (suite_close) {
    suite_close();
  }
  shmem_free(failures_of_pes);
  shmem_free(arena);
  return failed > 0 || ran == 0;
}
