/* What the tests of this suite share: TEST registers a test, EXPECT... say what was not so, and
 * suite_main runs all tests on all PEs in one order. C99, C11 and C++; on <shmem.h> alone.
 *
 * PE 0 prints for each test `begin NAME`, then `ok NAME`, `FAILED NAME` or `skipped NAME: REASON`;
 * every PE says on stderr what failed, where and on which PE. A name opens with the section of
 * OpenSHMEM 1.5 that it is about.
 *
 * Threads: EXPECT... and suite_random_of may be called by any; all else by the main thread. */
#ifndef WEFT_OPENSHMEM_SUITE_H
#define WEFT_OPENSHMEM_SUITE_H

#include <shmem.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* This PE and their number, known once the suite runs. */
extern int suite_me;
extern int suite_pe_count;

typedef struct suite_test {
  const char* name;
  void (*run)(void);
  struct suite_test* next;
} suite_test;

void suite_register(suite_test* test);

/* Runs what was registered; the first argument, if any, is a part of the names to run. */
int suite_main(int argc, char** argv);

/* A program may define these: called (collectively) before its first test and after its last. */
void suite_open(void) __attribute__((weak));
void suite_close(void) __attribute__((weak));

/* Zeroed symmetric memory, aligned to 64 bytes, until the test ends; the same on all PEs if they
   ask alike. */
void* suite_symmetric(size_t bytes);

/* To the right and to the left in the ring of all PEs. */
int suite_right(void);
int suite_left(void);

/* A mixed number from a seed; the same everywhere. */
uint64_t suite_random_of(uint64_t seed);
/* Sleeps for a time that differs between PEs and rounds, at most 2 ms. */
void suite_dawdle(int round);

/* Ends the test on this PE with a reason; all PEs must come to the same conclusion. */
#define SKIP(reason)      \
  do {                    \
    suite_skip((reason)); \
    return;               \
  } while (0)
void suite_skip(const char* reason);

typedef struct suite_place {
  const char* file;
  int line;
  const char* text; /* of what was checked */
} suite_place;

void suite_fail(suite_place place, const char* why);
void suite_expect_equal(suite_place place, long double expected, long double got);

#ifdef __cplusplus
}
#define SUITE_PLACE(text)    \
  suite_place {              \
    __FILE__, __LINE__, text \
  }
#else
#define SUITE_PLACE(text) ((suite_place){__FILE__, __LINE__, text})
#endif

#define EXPECT(condition)                               \
  do {                                                  \
    if (!(condition)) {                                 \
      suite_fail(SUITE_PLACE(#condition), "is not so"); \
    }                                                   \
  } while (0)

/* Any arithmetic type; a long double holds 64-bit integers exactly. */
#define EXPECT_EQUAL(expected, got)                                      \
  do {                                                                   \
    const long double suite_expected = (long double)(expected);          \
    const long double suite_got = (long double)(got);                    \
    if (!(suite_expected <= suite_got && suite_expected >= suite_got)) { \
      suite_expect_equal(SUITE_PLACE(#got), suite_expected, suite_got);  \
    }                                                                    \
  } while (0)

/* A test: TEST(name_of_function, "section what it shows") { ... } */
#define TEST(function, title)                                          \
  static void function(void);                                          \
  __attribute__((constructor)) static void register_##function(void) { \
    static suite_test test = {title, function, NULL};                  \
    suite_register(&test);                                             \
  }                                                                    \
  static void function(void)

#endif
