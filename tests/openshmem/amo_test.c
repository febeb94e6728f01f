/* 9.7: atomics under contention: every update happens exactly once, and fetches see what they
   must. */
#include <stdlib.h>

#include "tests/openshmem/suite.h"

enum { ROUNDS = 50 };

TEST(sums_are_exact, "9.7.1.8 add: all PEs add to one word, and the sum is exact") {
  long* word = suite_symmetric(sizeof *word);
  for (int round = 0; round < ROUNDS; ++round) {
    shmem_long_atomic_add(word, suite_me + 1, round % suite_pe_count);
  }
  shmem_barrier_all();
  long sum = 0;
  for (int pe = 0; pe < suite_pe_count; ++pe) {
    sum += shmem_long_atomic_fetch(word, pe);
  }
  EXPECT_EQUAL((long)ROUNDS * suite_pe_count * (suite_pe_count + 1) / 2, sum);
}

TEST(tickets_are_unique, "9.7.1.5 fetch_inc: all PEs draw tickets, and no two get the same") {
  int* counter = suite_symmetric(sizeof *counter);
  int* owners = suite_symmetric(sizeof(int) * (size_t)(ROUNDS * suite_pe_count));
  for (int round = 0; round < ROUNDS; ++round) {
    const int ticket = shmem_int_atomic_fetch_inc(counter, 0);
    EXPECT(ticket >= 0 && ticket < ROUNDS * suite_pe_count);
    if (ticket >= 0 && ticket < ROUNDS * suite_pe_count) {
      shmem_int_atomic_inc(&owners[ticket], 0);
    }
  }
  shmem_barrier_all();
  for (int i = 0; suite_me == 0 && i < ROUNDS * suite_pe_count; ++i) {
    EXPECT_EQUAL(1, owners[i]);
  }
}

TEST(own_tickets_increase, "9.7.1.7 fetch_add: the values that one PE fetches increase") {
  unsigned long* counter = suite_symmetric(sizeof *counter);
  unsigned long last = 0;
  for (int round = 0; round < ROUNDS; ++round) {
    const unsigned long now = shmem_ulong_atomic_fetch_add(counter, 3, suite_pe_count - 1);
    EXPECT(round == 0 || now >= last + 3);
    EXPECT_EQUAL(0, now % 3);
    last = now;
  }
  shmem_barrier_all();
  EXPECT_EQUAL(3 * ROUNDS * suite_pe_count, shmem_ulong_atomic_fetch(counter, suite_pe_count - 1));
}

TEST(compare_swap_loop, "9.7.1.3 compare_swap: increments made of it are not lost") {
  long long* word = suite_symmetric(sizeof *word);
  for (int round = 0; round < ROUNDS / 5; ++round) {
    long long seen = shmem_longlong_atomic_fetch(word, 0);
    for (;;) {
      const long long old = shmem_longlong_atomic_compare_swap(word, seen, seen + 1, 0);
      if (old == seen) {
        break;
      }
      seen = old;
    }
  }
  shmem_barrier_all();
  EXPECT_EQUAL(ROUNDS / 5 * suite_pe_count, shmem_longlong_g(word, 0));
}

TEST(one_wins, "9.7.1.3 compare_swap: of all PEs exactly one replaces the value") {
  int* words = suite_symmetric(ROUNDS * sizeof *words);
  int* wins = suite_symmetric(ROUNDS * sizeof *wins);
  for (int round = 0; round < ROUNDS; ++round) {
    if (shmem_int_atomic_compare_swap(&words[round], 0, suite_me + 1, 0) == 0) {
      shmem_int_atomic_inc(&wins[round], 0);
      EXPECT_EQUAL(suite_me + 1, shmem_int_atomic_fetch(&words[round], 0));
    }
  }
  shmem_barrier_all();
  for (int round = 0; suite_me == 0 && round < ROUNDS; ++round) {
    EXPECT_EQUAL(1, wins[round]);
    EXPECT(words[round] >= 1 && words[round] <= suite_pe_count);
  }
}

TEST(swap_loses_nothing, "9.7.1.4 swap: each value that was swapped in comes out once or stays") {
  long* word = suite_symmetric(sizeof *word);
  long* sum_out = suite_symmetric(sizeof *sum_out);
  long out = 0;
  long in = 0;
  for (int round = 0; round < ROUNDS; ++round) {
    const long value = suite_me * ROUNDS + round + 1;
    in += value;
    out += shmem_long_atomic_swap(word, value, 0);
  }
  shmem_long_atomic_add(sum_out, in - out, 0);
  shmem_barrier_all();
  if (suite_me == 0) {
    EXPECT_EQUAL(*word, *sum_out);
  }
}

TEST(bits_of_all,
     "9.7.1.12 or, 9.7.1.10 and, 9.7.1.14 xor: each PE sets, flips and clears its own bit") {
  uint64_t* word = suite_symmetric(sizeof *word);
  const uint64_t mine = UINT64_C(1) << (suite_me * 7 % 63);
  uint64_t all = 0;
  for (int pe = 0; pe < suite_pe_count; ++pe) {
    all |= UINT64_C(1) << (pe * 7 % 63);
  }
  shmem_uint64_atomic_or(word, mine, 0);
  shmem_barrier_all();
  EXPECT(shmem_uint64_atomic_fetch(word, 0) == all);
  shmem_barrier_all();
  for (int round = 0; round < 2 * ROUNDS + 1; ++round) {
    const uint64_t old = shmem_uint64_atomic_fetch_xor(word, mine, 0);
    EXPECT(((old & mine) != 0) == (round % 2 == 0));
  }
  shmem_barrier_all();
  EXPECT(shmem_uint64_atomic_fetch(word, 0) == 0);
  shmem_barrier_all();
  shmem_uint64_atomic_fetch_or(word, mine, 0);
  EXPECT((shmem_uint64_atomic_fetch_and(word, ~mine, 0) & mine) != 0);
  shmem_barrier_all();
  EXPECT(shmem_uint64_atomic_fetch(word, 0) == 0);
}

TEST(neighbours_unharmed, "9.7 atomics: words of 4 bytes side by side do not disturb each other") {
  unsigned int* words = suite_symmetric(sizeof(unsigned int) * (size_t)(suite_pe_count + 2));
  words[0] = words[suite_pe_count + 1] = 0xdeadbeefU;
  shmem_barrier_all();
  for (int round = 0; round < ROUNDS; ++round) {
    shmem_uint_atomic_add(&words[suite_me + 1], 0x10001, round % suite_pe_count);
    shmem_uint_atomic_xor(&words[suite_me + 1], 0x80000000U, round % suite_pe_count);
  }
  shmem_barrier_all();
  unsigned int sum = 0;
  for (int pe = 0; pe < suite_pe_count; ++pe) {
    sum += shmem_uint_g(&words[suite_me + 1], pe) & 0x7fffffffU;
  }
  EXPECT_EQUAL(ROUNDS * 0x10001, sum);
  EXPECT_EQUAL(0xdeadbeefU, words[0]);
  EXPECT_EQUAL(0xdeadbeefU, words[suite_pe_count + 1]);
}

TEST(set_is_not_torn, "9.7.1.2 set and 9.7.1.1 fetch: no fetch sees half of a set") {
  uint64_t* word = suite_symmetric(sizeof *word);
  for (int round = 0; round < ROUNDS; ++round) {
    const uint64_t half = (uint64_t)(suite_me * ROUNDS + round + 1);
    shmem_uint64_atomic_set(word, half << 32 | half, 0);
    const uint64_t seen = shmem_uint64_atomic_fetch(word, 0);
    EXPECT_EQUAL(seen >> 32, seen & 0xffffffffU);
  }
}

TEST(floating_point, "9.7.1 set, swap and fetch: of float and double") {
  float* single = suite_symmetric(sizeof *single);
  double* twice = suite_symmetric(sizeof *twice);
  shmem_float_atomic_set(single, 0.5F + (float)suite_me, suite_right());
  shmem_barrier_all();
  EXPECT_EQUAL(0.5 + suite_left(), *single);
  EXPECT_EQUAL(0.5 + suite_me, shmem_float_atomic_fetch(single, suite_right()));
  EXPECT_EQUAL(0, shmem_double_atomic_swap(twice, -1.25, suite_right()));
  EXPECT_EQUAL(-1.25, shmem_double_atomic_fetch(twice, suite_right()));
}

TEST(nonblocking_fetches,
     "9.7.2 fetching nbi: the values are there after quiet, and each ticket once") {
  int* counter = suite_symmetric(sizeof *counter);
  int* owners = suite_symmetric(sizeof(int) * (size_t)(ROUNDS * suite_pe_count));
  int tickets[ROUNDS];
  for (int round = 0; round < ROUNDS; ++round) {
    tickets[round] = -1;
    shmem_int_atomic_fetch_inc_nbi(&tickets[round], counter, 0);
  }
  shmem_quiet();
  for (int round = 0; round < ROUNDS; ++round) {
    EXPECT(tickets[round] >= 0 && tickets[round] < ROUNDS * suite_pe_count);
    if (tickets[round] >= 0 && tickets[round] < ROUNDS * suite_pe_count) {
      shmem_int_atomic_inc(&owners[tickets[round]], 0);
    }
  }
  shmem_barrier_all();
  for (int i = 0; suite_me == 0 && i < ROUNDS * suite_pe_count; ++i) {
    EXPECT_EQUAL(1, owners[i]);
  }
}

TEST(quiet_completes_amo, "9.11.2 quiet: atomics of this PE are done at all PEs when it returns") {
  long* words = suite_symmetric(sizeof(long) * (size_t)suite_pe_count);
  for (int pe = 0; pe < suite_pe_count; ++pe) {
    shmem_long_atomic_add(&words[suite_me], pe + 1, pe);
  }
  shmem_quiet();
  for (int pe = 0; pe < suite_pe_count; ++pe) {
    EXPECT_EQUAL(pe + 1, shmem_long_g(&words[suite_me], pe));
  }
}
