/* 9.10.10 of 1.6: scans, on all kinds of teams, of all lengths, in place and not. */
#include <stdlib.h>
#include <string.h>

#include "tests/openshmem/suite.h"

static long term(int pe, size_t i) {
  return (long)(suite_random_of((uint64_t)pe * 1000003 + i) % 1000000);
}

/* The sum of what PEs 0 to last - 1 of a team gave; pes[k] is the k-th. */
static long sum_before(const int* pes, int last, size_t i) {
  long sum = 0;
  for (int k = 0; k < last; ++k) {
    sum += term(pes[k], i);
  }
  return sum;
}

static void fill(long* source, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    source[i] = term(suite_me, i);
  }
}

typedef struct sides {
  long* dest;
  long* source;
  size_t count;
} sides;

/* One inclusive and one exclusive scan on a team of which this PE may be no member. */
static void scan_both(shmem_team_t team, sides both) {
  const int me = shmem_team_my_pe(team);
  int pes[64];
  for (int k = 0; k < shmem_team_n_pes(team) && k < 64; ++k) {
    pes[k] = shmem_team_translate_pe(team, k, SHMEM_TEAM_WORLD);
  }
  for (int inclusive = 0; inclusive < 2 && me >= 0; ++inclusive) {
    size_t wrong = 0;
    fill(both.source, both.count);
    EXPECT_EQUAL(0, inclusive ? shmem_long_sum_inscan(team, both.dest, both.source, both.count)
                              : shmem_long_sum_exscan(team, both.dest, both.source, both.count));
    for (size_t i = 0; i < both.count; ++i) {
      wrong += both.dest[i] != sum_before(pes, me + inclusive, i);
      wrong += both.dest != both.source && both.source[i] != term(suite_me, i);
    }
    EXPECT_EQUAL(0, wrong);
  }
}

TEST(scan_lengths,
     "1.6, 9.10.10 sum_inscan, sum_exscan: of no element to 300000, in place and not") {
  const size_t counts[] = {0, 1, 2, 7, 64, 1000, 8191, 8192, 20000, 300000};
  const size_t count_max = 300000;
  long* dest = shmem_malloc(count_max * sizeof *dest);
  long* source = shmem_malloc(count_max * sizeof *source);
  for (size_t k = 0; k < sizeof counts / sizeof counts[0]; ++k) {
    scan_both(SHMEM_TEAM_WORLD, (sides){dest, source, counts[k]});
    scan_both(SHMEM_TEAM_WORLD, (sides){source, source, counts[k]});
  }
  shmem_free(source);
  shmem_free(dest);
}

TEST(scan_teams,
     "1.6, 9.10.10 sum_inscan, sum_exscan: in the order of the team, backwards, with gaps, alone") {
  enum { COUNT = 3000 };

  long* dest = suite_symmetric(COUNT * sizeof *dest);
  long* source = suite_symmetric(COUNT * sizeof *source);
  const int n = suite_pe_count;
  const int ranges[][3] = {
      {n - 1, -1, n}, {0, 2, (n + 1) / 2}, {n / 2, 1, n - n / 2}, {n - 1, 1, 1}};
  for (size_t k = 0; k < sizeof ranges / sizeof ranges[0]; ++k) {
    shmem_team_t team = SHMEM_TEAM_INVALID;
    EXPECT_EQUAL(0, shmem_team_split_strided(SHMEM_TEAM_WORLD, ranges[k][0], ranges[k][1],
                                             ranges[k][2], NULL, 0, &team));
    if (team != SHMEM_TEAM_INVALID) {
      for (int round = 0; round < 5; ++round) {
        suite_dawdle(round);
        scan_both(team, (sides){round % 2 ? source : dest, source, COUNT - (size_t)round});
      }
      shmem_team_destroy(team);
    }
  }
  scan_both(SHMEM_TEAM_SHARED, (sides){dest, source, COUNT});
}

TEST(scan_repeats, "1.6, 9.10.10 sum_inscan: of doubles, the same bits each time") {
  enum { COUNT = 500 };

  double* dest = suite_symmetric(COUNT * sizeof *dest);
  double* source = suite_symmetric(COUNT * sizeof *source);
  double first[COUNT];
  for (int round = 0; round < 10; ++round) {
    for (size_t i = 0; i < COUNT; ++i) {
      source[i] = 1.0 / (double)(1 + term(suite_me, i));
    }
    suite_dawdle(round);
    EXPECT_EQUAL(0, shmem_double_sum_inscan(SHMEM_TEAM_WORLD, dest, source, COUNT));
    if (round == 0) {
      memcpy(first, dest, sizeof first);
    }
    EXPECT(memcmp(first, dest, sizeof first) == 0);
  }
}

TEST(scan_with_others,
     "1.6, 9.10.10 scans in turn with reductions and collects: none disturbs another") {
  long* dest = suite_symmetric(64 * sizeof *dest);
  long* source = suite_symmetric(sizeof *source);
  for (int round = 0; round < 40; ++round) {
    *source = suite_me + round;
    const long others = (long)suite_me * (suite_me - 1) / 2 + (long)suite_me * round;
    EXPECT_EQUAL(0, shmem_long_sum_exscan(SHMEM_TEAM_WORLD, dest, source, 1));
    EXPECT_EQUAL(others, *dest);
    EXPECT_EQUAL(0, shmem_long_max_reduce(SHMEM_TEAM_WORLD, dest, source, 1));
    EXPECT_EQUAL(suite_pe_count - 1 + round, *dest);
    EXPECT_EQUAL(0, shmem_long_sum_inscan(SHMEM_TEAM_WORLD, dest, source, 1));
    EXPECT_EQUAL(others + suite_me + round, *dest);
    EXPECT_EQUAL(0, shmem_long_fcollect(SHMEM_TEAM_WORLD, dest, source, 1));
    EXPECT_EQUAL(suite_pe_count - 1 + round, dest[suite_pe_count - 1]);
  }
}
