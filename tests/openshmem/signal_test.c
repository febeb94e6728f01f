/* 9.8: put_signal: who sees the signal sees the data. */
#include <stdlib.h>
#include <string.h>

#include "tests/openshmem/suite.h"

static void expect_all(const unsigned char* bytes, size_t count, int value) {
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i) {
    wrong += bytes[i] != (unsigned char)value;
  }
  EXPECT_EQUAL(0, wrong);
}

static const size_t kSizes[] = {0, 1, 7, 8, 63, 512, 1025, 5000, 70001};

enum { SIZE_COUNT = sizeof kSizes / sizeof kSizes[0], BYTES_MAX = 70001 };

TEST(data_before_signal, "9.8.3 put_signal: the data is there when the signal is seen (SET)") {
  unsigned char* target = suite_symmetric(BYTES_MAX);
  uint64_t* signal = suite_symmetric(sizeof *signal);
  unsigned char* source = malloc(BYTES_MAX);
  for (uint64_t round = 1; round <= 2 * SIZE_COUNT; ++round) {
    const size_t bytes = kSizes[round % SIZE_COUNT];
    memset(source, (int)round + suite_me, bytes);
    shmem_putmem_signal(target, source, bytes, signal, round, SHMEM_SIGNAL_SET, suite_right());
    EXPECT_EQUAL(round, shmem_signal_wait_until(signal, SHMEM_CMP_EQ, round));
    expect_all(target, bytes, (int)round + suite_left());
    shmem_barrier_all(); /* before the next round overwrites */
  }
  free(source);
}

TEST(signals_add_up, "9.8.3 put_signal: ADD counts the arrivals from all PEs") {
  enum { ROUNDS = 9, BYTES = 300 };

  unsigned char* target = suite_symmetric((size_t)(ROUNDS * BYTES) * (size_t)suite_pe_count);
  uint64_t* signal = suite_symmetric(sizeof *signal);
  unsigned char source[BYTES];
  for (int round = 0; round < ROUNDS; ++round) {
    memset(source, round * 10 + suite_me, BYTES);
    for (int step = 0; step < suite_pe_count; ++step) {
      unsigned char* slot = target + (ptrdiff_t)(suite_me * ROUNDS + round) * BYTES;
      const int pe = (suite_me + step) % suite_pe_count;
      shmem_putmem_signal(slot, source, BYTES, signal, 2, SHMEM_SIGNAL_ADD, pe);
    }
  }
  const uint64_t all = 2 * (uint64_t)ROUNDS * (uint64_t)suite_pe_count;
  EXPECT_EQUAL(all, shmem_signal_wait_until(signal, SHMEM_CMP_GE, all));
  for (int pe = 0; pe < suite_pe_count; ++pe) {
    for (int round = 0; round < ROUNDS; ++round) {
      expect_all(target + (ptrdiff_t)(pe * ROUNDS + round) * BYTES, BYTES, round * 10 + pe);
    }
  }
}

TEST(signal_is_fetched, "9.8.6 signal_fetch: what has been waited for") {
  uint64_t* signal = suite_symmetric(sizeof *signal);
  const char source = 1;
  char* sink = suite_symmetric(1);
  EXPECT_EQUAL(0, shmem_signal_fetch(signal));
  shmem_barrier_all();
  shmem_putmem_signal(sink, &source, 1, signal, 41, SHMEM_SIGNAL_ADD, suite_right());
  EXPECT_EQUAL(41, shmem_signal_wait_until(signal, SHMEM_CMP_NE, 0));
  EXPECT_EQUAL(41, shmem_signal_fetch(signal));
}

TEST(nonblocking_put_signal, "9.8.4 put_signal_nbi: the data is there when the signal is seen") {
  enum { COUNT = 16, BYTES = 2000 };

  unsigned char* target = suite_symmetric(COUNT * BYTES);
  uint64_t* signals = suite_symmetric(COUNT * sizeof *signals);
  unsigned char* source = malloc(COUNT * BYTES);
  for (int i = 0; i < COUNT; ++i) {
    memset(source + (ptrdiff_t)i * BYTES, i + suite_me, BYTES);
    shmem_putmem_signal_nbi(target + (ptrdiff_t)i * BYTES, source + (ptrdiff_t)i * BYTES, BYTES,
                            &signals[i], (uint64_t)i + 5, SHMEM_SIGNAL_SET, suite_right());
  }
  for (int i = COUNT - 1; i >= 0; --i) {
    EXPECT_EQUAL(i + 5, shmem_signal_wait_until(&signals[i], SHMEM_CMP_NE, 0));
    expect_all(target + (ptrdiff_t)i * BYTES, BYTES, i + suite_left());
  }
  shmem_quiet();
  free(source);
}

TEST(ring_of_signals, "9.8.3 put_signal: a ring forwards data without a barrier") {
  enum { COUNT = 200 };

  long* data = suite_symmetric(COUNT * sizeof *data);
  uint64_t* signal = suite_symmetric(sizeof *signal);
  long source[COUNT];
  for (long i = 0; i < COUNT; ++i) {
    source[i] = i * i;
  }
  if (suite_me == 0) {
    shmem_long_put_signal(data, source, COUNT, signal, 1, SHMEM_SIGNAL_SET, suite_right());
  }
  shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 1);
  if (suite_me != 0) {
    shmem_long_put_signal(data, data, COUNT, signal, 1, SHMEM_SIGNAL_SET, suite_right());
  }
  for (long i = 0; i < COUNT; ++i) {
    EXPECT_EQUAL(i * i, data[i]);
  }
}

TEST(signal_is_atomic_with_amo,
     "9.8.1 signals: a signal's ADD is atomic with atomic_add on the word") {
  enum { ROUNDS = 25 };

  uint64_t* word = suite_symmetric(sizeof *word);
  char* sink = suite_symmetric((size_t)suite_pe_count);
  const char source = 1;
  for (int round = 0; round < ROUNDS; ++round) {
    shmem_uint64_atomic_add(word, 1, 0);
    shmem_putmem_signal(&sink[suite_me], &source, 1, word, 1000, SHMEM_SIGNAL_ADD, 0);
  }
  shmem_barrier_all();
  if (suite_me == 0) {
    EXPECT_EQUAL(ROUNDS * suite_pe_count * 1001, *word);
  }
}

TEST(signals_and_waits, "9.10 wait_until: signals are compatible with wait_until") {
  uint64_t* signal = suite_symmetric(sizeof *signal);
  char* sink = suite_symmetric(1);
  const char source = 9;
  shmem_putmem_signal(sink, &source, 1, signal, 77, SHMEM_SIGNAL_SET, suite_right());
  shmem_uint64_wait_until(signal, SHMEM_CMP_GT, 76);
  EXPECT_EQUAL(77, *signal);
  EXPECT_EQUAL(9, *sink);
}

TEST(signals_and_tests, "9.10 test: signals are compatible with test") {
  uint64_t* signal = suite_symmetric(sizeof *signal);
  char* sink = suite_symmetric(1);
  const char source = 9;
  shmem_putmem_signal(sink, &source, 1, signal, 77, SHMEM_SIGNAL_SET, suite_right());
  while (!shmem_uint64_test(signal, SHMEM_CMP_EQ, 77)) {
  }
  EXPECT_EQUAL(9, *sink);
}

TEST(signal_set_and_add,
     "1.6, 9.8.3, 9.8.5 signal_add, signal_set: without data, with and without a context") {
  uint64_t* words = suite_symmetric(4 * sizeof *words);
  shmem_ctx_t context = SHMEM_CTX_INVALID;
  EXPECT_EQUAL(0, shmem_ctx_create(0, &context));
  shmem_signal_set(&words[0], 41, suite_right());
  shmem_ctx_signal_set(context, &words[1], UINT64_MAX, suite_right());
  EXPECT_EQUAL(41, shmem_signal_wait_until(&words[0], SHMEM_CMP_NE, 0));
  EXPECT(shmem_signal_wait_until(&words[1], SHMEM_CMP_NE, 0) == UINT64_MAX);
  for (int pe = 0; pe < suite_pe_count; ++pe) {
    shmem_signal_add(&words[2], 1, pe);
    shmem_ctx_signal_add(context, &words[3], (uint64_t)suite_me + 1, pe);
  }
  const uint64_t count = (uint64_t)suite_pe_count;
  EXPECT_EQUAL(count, shmem_signal_wait_until(&words[2], SHMEM_CMP_GE, count));
  shmem_signal_wait_until(&words[3], SHMEM_CMP_EQ, count * (count + 1) / 2);
#if !defined(SHMEM_NO_GENERICS)
  shmem_signal_add(context, &words[0], 1, suite_right());
  EXPECT_EQUAL(42, shmem_signal_wait_until(&words[0], SHMEM_CMP_NE, 41));
  shmem_barrier_all();
  shmem_signal_set(context, &words[0], 7, suite_right());
  EXPECT_EQUAL(7, shmem_signal_wait_until(&words[0], SHMEM_CMP_NE, 42));
#endif
  shmem_ctx_destroy(context);
}

TEST(signal_constants,
     "9.8.2 signals: SHMEM_SIGNAL_SET and SHMEM_SIGNAL_ADD differ and are constants") {
  enum { SET = SHMEM_SIGNAL_SET, ADD = SHMEM_SIGNAL_ADD };

  EXPECT((int)SET != (int)ADD);
}
