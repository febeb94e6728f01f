/* 9.11: what fence orders and what quiet completes; 9.12 locks; 9.13 the cache's no-ops. */
#include <string.h>

#include "tests/openshmem/suite.h"

enum { ROUNDS = 30, COUNT = 40 };

TEST(fence_orders_puts, "9.11.1 fence: who sees the flag sees the data that was put before it") {
  long* data = suite_symmetric(ROUNDS * COUNT * sizeof *data);
  long* flag = suite_symmetric(sizeof *flag);
  long source[COUNT];
  for (long round = 1; round <= ROUNDS; ++round) {
    for (long i = 0; i < COUNT; ++i) {
      source[i] = round * 100 + i;
    }
    shmem_long_put(data + (round - 1) * COUNT, source, COUNT, suite_right());
    shmem_fence();
    shmem_long_p(flag, round, suite_right());
    shmem_fence();
    if (round % 3 == 0) {
      shmem_long_wait_until(flag, SHMEM_CMP_GE, round);
      EXPECT_EQUAL(round * 100, data[(round - 1) * COUNT]);
      EXPECT_EQUAL(round * 100 + COUNT - 1, data[round * COUNT - 1]);
    }
  }
}

TEST(fence_orders_nbi_and_amo, "9.11.1 fence: orders nonblocking puts and atomics too") {
  long* data = suite_symmetric(ROUNDS * sizeof *data);
  long* sum = suite_symmetric(sizeof *sum);
  uint64_t* flag = suite_symmetric(sizeof *flag);
  static long source[ROUNDS];
  for (int round = 0; round < ROUNDS; ++round) {
    source[round] = suite_me * 1000 + round;
    shmem_long_put_nbi(&data[round], &source[round], 1, suite_right());
    shmem_long_atomic_add(sum, 1, suite_right());
  }
  shmem_fence();
  shmem_uint64_atomic_set(flag, 1, suite_right());
  shmem_uint64_wait_until(flag, SHMEM_CMP_EQ, 1);
  EXPECT_EQUAL(ROUNDS, *sum);
  for (int round = 0; round < ROUNDS; ++round) {
    EXPECT_EQUAL(suite_left() * 1000 + round, data[round]);
  }
  shmem_quiet();
}

TEST(quiet_of_some, "1.6, 9.12.3 pe_quiet: completes what went to the PEs that are named") {
  long* data = suite_symmetric(COUNT * sizeof *data);
  long* ready = suite_symmetric(sizeof *ready);
  long source[COUNT];
  const int targets[2] = {suite_right(), suite_left()};
  shmem_ctx_t context = SHMEM_CTX_INVALID;
  EXPECT_EQUAL(0, shmem_ctx_create(0, &context));
  for (int round = 1; round <= ROUNDS; ++round) {
    for (long i = 0; i < COUNT; ++i) {
      source[i] = round * 1000 + i;
    }
    shmem_ctx_t used = round % 2 ? SHMEM_CTX_DEFAULT : context;
    shmem_ctx_long_put_nbi(used, data, source, COUNT, suite_right());
    if (round % 2) {
      shmem_pe_quiet(targets, 2);
    } else {
      shmem_ctx_pe_quiet(context, targets, 1);
    }
    memset(source, 0, sizeof source);
    shmem_long_p(ready, round, suite_right());
    shmem_long_wait_until(ready, SHMEM_CMP_EQ, round);
    EXPECT_EQUAL(round * 1000, data[0]);
    EXPECT_EQUAL(round * 1000 + COUNT - 1, data[COUNT - 1]);
    shmem_sync_all();
  }
  shmem_pe_quiet(NULL, 0);
  shmem_ctx_pe_quiet(SHMEM_CTX_INVALID, targets, 2);
  shmem_ctx_destroy(context);
}

TEST(sessions, "1.6, 9.9 session_start, session_stop: hints, which change no result") {
  enum { UPDATES = 500 };

  uint64_t* table = suite_symmetric(16 * sizeof *table);
  const shmem_ctx_session_config_t config = {UPDATES};
  const long mask = SHMEM_CTX_SESSION_TOTAL_OPS;
  shmem_ctx_t context = SHMEM_CTX_INVALID;
  EXPECT_EQUAL(0, shmem_ctx_create(0, &context));
  shmem_ctx_session_start(context, SHMEM_CTX_SESSION_BATCH, &config, mask);
  shmem_ctx_session_start(context, 0, NULL, 0); /* again, with other hints */
  for (int i = 0; i < UPDATES; ++i) {
    shmem_ctx_uint64_atomic_add(context, &table[i % 16], 1, suite_right());
  }
  shmem_ctx_quiet(context);
  shmem_ctx_session_stop(context);
  shmem_ctx_session_stop(context);
  shmem_ctx_session_start(SHMEM_CTX_DEFAULT, SHMEM_CTX_SESSION_BATCH, NULL, 0);
  shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
  shmem_ctx_session_start(SHMEM_CTX_INVALID, SHMEM_CTX_SESSION_BATCH, &config, mask);
  shmem_ctx_session_stop(SHMEM_CTX_INVALID);
  shmem_barrier_all();
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQUAL(UPDATES / 16 + (i < UPDATES % 16), table[i]);
  }
  shmem_ctx_destroy(context);
}

TEST(fence_on_context, "9.11.1 ctx_fence: orders the puts of its context") {
  long* data = suite_symmetric(COUNT * sizeof *data);
  long* flag = suite_symmetric(sizeof *flag);
  long source[COUNT];
  shmem_ctx_t context = SHMEM_CTX_INVALID;
  EXPECT_EQUAL(0, shmem_ctx_create(0, &context));
  for (long i = 0; i < COUNT; ++i) {
    source[i] = suite_me + i;
  }
  shmem_ctx_long_put(context, data, source, COUNT, suite_right());
  shmem_ctx_fence(context);
  shmem_ctx_long_p(context, flag, 1, suite_right());
  shmem_long_wait_until(flag, SHMEM_CMP_EQ, 1);
  for (long i = 0; i < COUNT; ++i) {
    EXPECT_EQUAL(suite_left() + i, data[i]);
  }
  shmem_ctx_destroy(context);
}

TEST(quiet_shows_to_third,
     "9.11.2 quiet: a third PE that is told afterwards finds the data at the target") {
  long* data = suite_symmetric(COUNT * sizeof *data);
  long* told = suite_symmetric(sizeof *told);
  long source[COUNT];
  const int target = suite_right();
  const int third = (suite_me + 2) % suite_pe_count;
  for (long i = 0; i < COUNT; ++i) {
    source[i] = suite_me * 100L + i;
  }
  shmem_long_put_nbi(data, source, COUNT, target);
  shmem_quiet();
  shmem_long_p(told, 1, third);
  shmem_long_wait_until(told, SHMEM_CMP_EQ, 1);
  const int first = (suite_me + 2 * suite_pe_count - 2) % suite_pe_count;
  shmem_long_get(source, data, COUNT, (first + 1) % suite_pe_count);
  for (long i = 0; i < COUNT; ++i) {
    EXPECT_EQUAL(first * 100L + i, source[i]);
  }
}

TEST(quiet_completes_fetches, "9.11.2 quiet: completes nonblocking fetches") {
  int* word = suite_symmetric(sizeof *word);
  int fetched = -1;
  *word = 3 + suite_me;
  shmem_barrier_all();
  shmem_int_atomic_fetch_nbi(&fetched, word, suite_right());
  shmem_quiet();
  EXPECT_EQUAL(suite_right() + 3, fetched);
}

TEST(quiet_completes_gets, "9.11.2 quiet: completes nonblocking gets") {
  int* words = suite_symmetric(COUNT * sizeof *words);
  int got[COUNT];
  for (int i = 0; i < COUNT; ++i) {
    words[i] = suite_me + i;
    got[i] = -1;
  }
  shmem_barrier_all();
  shmem_int_get_nbi(got, words, COUNT, suite_right());
  shmem_quiet();
  for (int i = 0; i < COUNT; ++i) {
    EXPECT_EQUAL(suite_right() + i, got[i]);
  }
}

TEST(quiet_with_nothing, "9.11 quiet and fence: return at once when nothing is outstanding") {
  for (int i = 0; i < 100; ++i) {
    shmem_quiet();
    shmem_fence();
  }
}

TEST(context_with_nothing, "9.11 ctx_quiet and ctx_fence: return at once, too") {
  for (int i = 0; i < 100; ++i) {
    shmem_ctx_quiet(SHMEM_CTX_DEFAULT);
    shmem_ctx_fence(SHMEM_CTX_DEFAULT);
  }
}

/* Adds 1 to the two words of PE 0 by get and put, which only a lock keeps exact. */
static void add_without_atomics(long* words) {
  const long first = shmem_long_g(&words[0], 0);
  const long second = shmem_long_g(&words[1], 0);
  EXPECT_EQUAL(first, second);
  shmem_long_p(&words[0], first + 1, 0);
  shmem_long_p(&words[1], second + 1, 0);
}

TEST(lock_excludes,
     "9.12.1 set_lock, clear_lock: one at a time, and what it wrote is seen by the next") {
  long* lock = suite_symmetric(sizeof *lock);
  long* words = suite_symmetric(2 * sizeof *words);
  for (int round = 0; round < ROUNDS / 2; ++round) {
    shmem_set_lock(lock);
    add_without_atomics(words);
    shmem_clear_lock(lock);
  }
  shmem_barrier_all();
  EXPECT_EQUAL(ROUNDS / 2 * suite_pe_count, shmem_long_g(&words[0], 0));
}

TEST(test_lock_excludes, "9.12.1 test_lock: 0 when it took the lock, 1 when another holds it") {
  long* lock = suite_symmetric(sizeof *lock);
  long* words = suite_symmetric(2 * sizeof *words);
  if (suite_me == 0) {
    EXPECT_EQUAL(0, shmem_test_lock(lock));
  }
  shmem_barrier_all();
  if (suite_me != 0) {
    EXPECT_EQUAL(1, shmem_test_lock(lock));
  }
  shmem_barrier_all();
  if (suite_me == 0) {
    shmem_clear_lock(lock);
  }
  for (int round = 0; round < ROUNDS / 3; ++round) {
    while (shmem_test_lock(lock) != 0) {
    }
    add_without_atomics(words);
    shmem_clear_lock(lock);
  }
  shmem_barrier_all();
  EXPECT_EQUAL(ROUNDS / 3 * suite_pe_count, shmem_long_g(&words[0], 0));
}

TEST(locks_are_independent, "9.12.1 locks: different locks do not wait for each other") {
  long* locks = suite_symmetric(2 * sizeof *locks);
  long* flag = suite_symmetric(sizeof *flag);
  if (suite_pe_count < 2) {
    SKIP("needs 2 PEs");
  }
  if (suite_me == 0) {
    shmem_set_lock(&locks[0]);
    shmem_long_wait_until(flag, SHMEM_CMP_EQ, 1); /* PE 1 got and gave the other meanwhile */
    shmem_clear_lock(&locks[0]);
  } else if (suite_me == 1) {
    shmem_set_lock(&locks[1]);
    shmem_clear_lock(&locks[1]);
    shmem_long_p(flag, 1, 0);
  }
}

TEST(cache_calls, "9.13 cache: the deprecated calls do nothing, and harm nothing") {
  int* word = suite_symmetric(sizeof *word);
  *word = 42 + suite_me;
  shmem_set_cache_inv();
  shmem_set_cache_line_inv(word);
  shmem_clear_cache_inv();
  shmem_clear_cache_line_inv(word);
  shmem_udcflush();
  shmem_udcflush_line(word);
  EXPECT_EQUAL(42 + suite_me, *word);
}
