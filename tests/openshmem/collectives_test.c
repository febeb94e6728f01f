/* 9.9: the collectives of teams: on the world, its node, odd and even PEs, the world backwards, and
 * rows and columns of a grid; each with several lengths, again and again, while PEs dawdle. */
#include <stdlib.h>
#include <string.h>

#include "tests/openshmem/suite.h"

enum { TEAM_COUNT = 6, PES_MAX = 64 };

typedef struct placed_team {
  shmem_team_t handle; /* SHMEM_TEAM_INVALID where this PE is not in it */
  int me;
  int size;
} placed_team;

static placed_team place(shmem_team_t handle) {
  const placed_team team = {handle, shmem_team_my_pe(handle), shmem_team_n_pes(handle)};
  return team;
}

static placed_team strided(int start, int stride, int size) {
  shmem_team_t handle = SHMEM_TEAM_INVALID;
  EXPECT_EQUAL(0,
               shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, NULL, 0, &handle));
  return place(handle);
}

/* All teams that the tests use; made anew in each test, since that is also worth testing. */
static void make_teams(placed_team* teams) {
  shmem_team_t row = SHMEM_TEAM_INVALID;
  shmem_team_t column = SHMEM_TEAM_INVALID;
  EXPECT_EQUAL(0, shmem_team_split_2d(SHMEM_TEAM_WORLD, 3, NULL, 0, &row, NULL, 0, &column));
  teams[0] = place(SHMEM_TEAM_WORLD);
  teams[1] = place(SHMEM_TEAM_SHARED);
  teams[2] = strided(suite_pe_count - 1, -1, suite_pe_count);
  teams[3] = strided(suite_pe_count > 1, 2, suite_pe_count > 1 ? suite_pe_count / 2 : 1);
  teams[4] = place(row);
  teams[5] = place(column);
}

static void destroy_teams(const placed_team* teams) {
  for (int i = 2; i < TEAM_COUNT; ++i) {
    shmem_team_destroy(teams[i].handle);
  }
}

/* Calls `check` on each team that this PE is in. */
static void on_each_team(void (*check)(placed_team team)) {
  placed_team teams[TEAM_COUNT];
  make_teams(teams);
  for (int i = 0; i < TEAM_COUNT; ++i) {
    if (teams[i].handle != SHMEM_TEAM_INVALID) {
      check(teams[i]);
    }
    shmem_barrier_all(); /* the next team's collectives use the same memory */
  }
  destroy_teams(teams);
}

static long value_of(int pe, int round, size_t position) {
  return (long)(suite_random_of(((uint64_t)pe << 40) + ((uint64_t)round << 20) + position) >> 20);
}

static const size_t kCounts[] = {0, 1, 3, 8, 129, 1000};

enum { COUNTS = sizeof kCounts / sizeof kCounts[0], COUNT_MAX = 1000 };

/* Symmetric memory for the checks; every test begins with take_memory. */
static long* source;
static long* dest;

static void take_memory(size_t dest_longs) {
  source = suite_symmetric(8000 * sizeof *source);
  dest = suite_symmetric(dest_longs * sizeof *dest);
}

static void poison(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    dest[i] = -7;
  }
}

/* ---- barrier and sync ------------------------------------------------------------------------ */

TEST(barrier_all_separates,
     "9.9.1 barrier_all: nobody leaves before all have entered; puts are complete") {
  long* slots = suite_symmetric(sizeof(long) * (size_t)suite_pe_count);
  for (long round = 1; round <= 20; ++round) {
    if (round % 5 == 0) {
      suite_dawdle((int)round);
    }
    for (int pe = 0; pe < suite_pe_count; ++pe) {
      shmem_long_p(&slots[suite_me], round, pe);
    }
    shmem_barrier_all();
    for (int pe = 0; pe < suite_pe_count; ++pe) {
      EXPECT_EQUAL(round, slots[pe]);
    }
    shmem_barrier_all();
  }
}

/* The slots of all PEs of a team, at PE `pe` of the world, say that they have entered a round. */
static void expect_entered(const long* slots, int count, long round, int pe) {
  for (int i = 0; i < count; ++i) {
    EXPECT(shmem_long_g(&slots[i], pe) >= round);
  }
}

TEST(sync_all_separates, "9.9.4 sync_all: nobody leaves before all have entered") {
  long* slots = suite_symmetric(sizeof(long) * (size_t)suite_pe_count);
  for (long round = 1; round <= 20; ++round) {
    if (round % 5 == 0) {
      suite_dawdle((int)round);
    }
    shmem_long_p(&slots[suite_me], round, 0);
    shmem_quiet();
    shmem_sync_all();
    expect_entered(slots, suite_pe_count, round, 0);
  }
}

static void check_sync(placed_team team) {
  long* slots = dest;
  for (long round = 1; round <= 10; ++round) {
    if (round % 5 == 0) {
      suite_dawdle((int)round);
    }
    const int first = shmem_team_translate_pe(team.handle, 0, SHMEM_TEAM_WORLD);
    shmem_long_p(&slots[team.me], round, first);
    shmem_quiet();
    EXPECT_EQUAL(0, shmem_team_sync(team.handle));
    expect_entered(slots, team.size, round, first);
  }
  shmem_team_sync(team.handle);
  for (int i = 0; team.me == 0 && i < team.size; ++i) {
    slots[i] = 0;
  }
}

TEST(team_sync_separates,
     "9.9.3 team_sync: nobody of the team leaves before all of it have entered") {
  take_memory((size_t)suite_pe_count);
  on_each_team(check_sync);
}

/* ---- Moving data ----------------------------------------------------------------------------- */

static void check_broadcast(placed_team team) {
  for (int round = 0; round < COUNTS * 2; ++round) {
    const size_t count = kCounts[round % COUNTS];
    const int root = round * 5 % team.size;
    for (size_t i = 0; i < count; ++i) {
      source[i] = value_of(team.me, round, i);
    }
    poison(count + 1);
    shmem_team_sync(team.handle); /* dest of all must be ready */
    EXPECT_EQUAL(0, shmem_long_broadcast(team.handle, dest, source, count, root));
    for (size_t i = 0; i < count; ++i) {
      source[i] = 0; /* may be reused at once */
      EXPECT_EQUAL(value_of(root, round, i), dest[i]);
    }
    EXPECT_EQUAL(-7, dest[count]);
  }
}

TEST(broadcast_arrives, "9.9.7 broadcast: from every root, to all of the team, the root included") {
  take_memory(COUNT_MAX + 1);
  on_each_team(check_broadcast);
}

static void check_broadcast_in_turn(placed_team team) {
  long* slots = dest;
  for (int round = 0; round < 40; ++round) {
    if (round % 10 == 0) {
      suite_dawdle(round);
    }
    const int root = round % team.size;
    source[round] = value_of(team.me, round, 1);
    EXPECT_EQUAL(0, shmem_long_broadcast(team.handle, &slots[round], &source[round], 1, root));
    EXPECT_EQUAL(value_of(root, round, 1), slots[round]);
  }
}

TEST(broadcast_back_to_back,
     "9.9.7 broadcast: forty in a row, the root goes round, nothing in between") {
  take_memory(40);
  on_each_team(check_broadcast_in_turn);
}

static void check_fcollect(placed_team team) {
  for (int round = 0; round < COUNTS; ++round) {
    const size_t count = kCounts[round] > 129 ? 500 : kCounts[round];
    for (size_t i = 0; i < count; ++i) {
      source[i] = value_of(team.me, round, i);
    }
    poison(count * (size_t)team.size + 1);
    shmem_team_sync(team.handle);
    EXPECT_EQUAL(0, shmem_long_fcollect(team.handle, dest, source, count));
    for (int pe = 0; pe < team.size; ++pe) {
      for (size_t i = 0; i < count; ++i) {
        EXPECT_EQUAL(value_of(pe, round, i), dest[(size_t)pe * count + i]);
      }
    }
    EXPECT_EQUAL(-7, dest[count * (size_t)team.size]);
  }
}

TEST(fcollect_concatenates, "9.9.8 fcollect: the sources of all, in the team's order") {
  take_memory(500 * (size_t)suite_pe_count + 1);
  on_each_team(check_fcollect);
}

/* How many elements PE `pe` of a team gives in a round: none, few or many. */
static size_t collect_count(int pe, int round) {
  const size_t counts[] = {0, 1, 300, 2, 0, 17};
  return counts[(pe * 5 + round) % 6];
}

static void check_collect(placed_team team) {
  for (int round = 0; round < 7; ++round) {
    const size_t mine = round == 6 ? 0 : collect_count(team.me, round);
    for (size_t i = 0; i < mine; ++i) {
      source[i] = value_of(team.me, round, i);
    }
    poison(300 * (size_t)team.size + 1);
    shmem_team_sync(team.handle);
    EXPECT_EQUAL(0, shmem_long_collect(team.handle, dest, source, mine));
    size_t position = 0;
    for (int pe = 0; round < 6 && pe < team.size; ++pe) {
      for (size_t i = 0; i < collect_count(pe, round); ++i) {
        EXPECT_EQUAL(value_of(pe, round, i), dest[position++]);
      }
    }
    EXPECT_EQUAL(-7, dest[position]);
  }
}

TEST(collect_concatenates,
     "9.9.8 collect: lengths that differ between PEs, also 0, also 0 on all") {
  take_memory(300 * (size_t)suite_pe_count + 1);
  on_each_team(check_collect);
}

static void check_alltoall(placed_team team) {
  for (int round = 0; round < COUNTS - 1; ++round) {
    const size_t count = kCounts[round];
    for (size_t i = 0; i < count * (size_t)team.size; ++i) {
      source[i] = value_of(team.me, round, i);
    }
    poison(count * (size_t)team.size + 1);
    shmem_team_sync(team.handle);
    EXPECT_EQUAL(0, shmem_long_alltoall(team.handle, dest, source, count));
    for (int pe = 0; pe < team.size; ++pe) {
      for (size_t i = 0; i < count; ++i) {
        const size_t position = (size_t)team.me * count + i;
        EXPECT_EQUAL(value_of(pe, round, position), dest[(size_t)pe * count + i]);
      }
    }
    EXPECT_EQUAL(-7, dest[count * (size_t)team.size]);
  }
}

TEST(alltoall_exchanges, "9.9.5 alltoall: block l of PE k becomes block k of PE l") {
  take_memory(129 * (size_t)suite_pe_count + 1);
  on_each_team(check_alltoall);
}

typedef struct strides {
  size_t target;
  size_t source;
  size_t count;
} strides;

static void check_strided_round(placed_team team, int round, strides s) {
  const size_t size = (size_t)team.size;
  const size_t me = (size_t)team.me;
  for (size_t i = 0; i < s.count * s.source * size; ++i) {
    source[i] = value_of(team.me, round, i);
  }
  poison(s.count * s.target * size + 1);
  shmem_team_sync(team.handle);
  EXPECT_EQUAL(0, shmem_long_alltoalls(team.handle, dest, source, (ptrdiff_t)s.target,
                                       (ptrdiff_t)s.source, s.count));
  for (size_t i = 0; i < s.count * s.target * size; ++i) {
    const size_t element = i / s.target;
    const int pe = s.count ? (int)(element / s.count) : 0;
    const size_t there = (me * s.count + element % (s.count + !s.count)) * s.source;
    EXPECT_EQUAL(i % s.target ? -7 : value_of(pe, round, there), dest[i]);
  }
  EXPECT_EQUAL(-7, dest[s.count * s.target * size]);
}

static void check_alltoalls(placed_team team) {
  const strides all[] = {{1, 1, 5}, {2, 1, 3}, {1, 3, 7}, {4, 3, 9}, {2, 2, 1}, {3, 3, 0}};
  for (int round = 0; round < 6; ++round) {
    check_strided_round(team, round, all[round]);
  }
}

TEST(alltoalls_exchanges, "9.9.6 alltoalls: elements at their strides; the gaps stay untouched") {
  take_memory(36 * (size_t)suite_pe_count + 1);
  on_each_team(check_alltoalls);
}

/* ---- Reductions ------------------------------------------------------------------------------ */

static void check_sum(placed_team team) {
  for (int round = 0; round < COUNTS; ++round) {
    const size_t count = kCounts[round];
    for (size_t i = 0; i < count; ++i) {
      source[i] = value_of(team.me, round, i) % 1000000;
    }
    poison(count + 1);
    shmem_team_sync(team.handle);
    EXPECT_EQUAL(0, shmem_long_sum_reduce(team.handle, dest, source, count));
    for (size_t i = 0; i < count; ++i) {
      long sum = 0;
      for (int pe = 0; pe < team.size; ++pe) {
        sum += value_of(pe, round, i) % 1000000;
      }
      EXPECT_EQUAL(sum, dest[i]);
      source[i] = 0;
    }
    EXPECT_EQUAL(-7, dest[count]);
  }
}

TEST(sum_of_all, "9.9.9.6 sum_reduce: on every team, with every length, also 0") {
  take_memory(COUNT_MAX + 1);
  on_each_team(check_sum);
}

static void check_in_place(placed_team team) {
  for (int round = 0; round < COUNTS; ++round) {
    const size_t count = kCounts[round];
    for (size_t i = 0; i < count; ++i) {
      dest[i] = value_of(team.me, round, i);
    }
    dest[count] = -7;
    EXPECT_EQUAL(0, shmem_long_max_reduce(team.handle, dest, dest, count));
    for (size_t i = 0; i < count; ++i) {
      long most = value_of(0, round, i);
      for (int pe = 1; pe < team.size; ++pe) {
        most = value_of(pe, round, i) > most ? value_of(pe, round, i) : most;
      }
      EXPECT_EQUAL(most, dest[i]);
    }
    EXPECT_EQUAL(-7, dest[count]);
    shmem_team_sync(team.handle);
  }
}

TEST(reduce_in_place, "9.9.9 reductions: dest may be source") {
  take_memory(COUNT_MAX + 1);
  on_each_team(check_in_place);
}

static void check_same_bits(placed_team team) {
  enum { COUNT = 200 };

  double* from = (double*)source;
  double* to = (double*)dest;
  double first[COUNT];
  for (int round = 0; round < 6; ++round) {
    for (size_t i = 0; i < COUNT; ++i) {
      from[i] = (double)value_of(team.me, 0, i) / 3.0 * (i % 7 ? 1e-9 : 1e9);
    }
    suite_dawdle(round);
    shmem_team_sync(team.handle);
    EXPECT_EQUAL(0, shmem_double_sum_reduce(team.handle, to, from, COUNT));
    if (round == 0) {
      memcpy(first, to, sizeof first);
    }
    EXPECT(memcmp(first, to, sizeof first) == 0);
    shmem_team_sync(team.handle);
    shmem_double_get(from, to, COUNT, shmem_team_translate_pe(team.handle, 0, SHMEM_TEAM_WORLD));
    EXPECT(memcmp(first, from, sizeof first) == 0); /* what PE 0 got */
  }
}

TEST(same_bits, "9.9.9.6 sum_reduce: floating point, the same bits each time and on all PEs") {
  take_memory(200);
  on_each_team(check_same_bits);
}

static void check_long_doubles(placed_team team) {
  long double* from = (long double*)source;
  long double* to = (long double*)dest;
  for (int i = 0; i < 9; ++i) {
    from[i] = 1.0L + (long double)(team.me + 1) * (long double)i * 0x1p-60L;
  }
  EXPECT_EQUAL(0, shmem_longdouble_max_reduce(team.handle, to, from, 9));
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQUAL(1.0L + (long double)team.size * (long double)i * 0x1p-60L, to[i]);
  }
  shmem_team_sync(team.handle);
  EXPECT_EQUAL(0, shmem_longdouble_sum_reduce(team.handle, to, from, 9));
  long double sum = 0;
  for (int pe = 0; pe < team.size; ++pe) {
    sum += 1.0L + (long double)(pe + 1) * 8 * 0x1p-60L;
  }
  const long double error = sum - to[8];
  EXPECT(error < 0x1p-58L && error > -0x1p-58L); /* more than a double could keep */
}

TEST(long_double_reduce, "9.9.9 reductions: long double keeps its precision") {
  take_memory(40);
  on_each_team(check_long_doubles);
}

static void check_complex(placed_team team) {
  double _Complex* from = (double _Complex*)source;
  double _Complex* to = (double _Complex*)dest;
  const double _Complex i_unit = __builtin_complex(0.0, 1.0);
  from[0] = (double)(team.me + 1) + i_unit * (double)team.me;
  from[1] = i_unit;
  EXPECT_EQUAL(0, shmem_complexd_sum_reduce(team.handle, to, from, 1));
  EXPECT_EQUAL(team.size * (team.size + 1) / 2, __real__ to[0]);
  EXPECT_EQUAL(team.size * (team.size - 1) / 2, __imag__ to[0]);
  EXPECT_EQUAL(0, shmem_complexd_prod_reduce(team.handle, to + 2, from + 1, 1));
  const double reals[] = {1, 0, -1, 0};
  EXPECT_EQUAL(reals[team.size % 4], __real__ to[2]); /* i to the power of size */
  EXPECT_EQUAL(reals[(team.size + 3) % 4], __imag__ to[2]);
}

TEST(complex_reduce, "9.9.9 reductions: complex sums and products") {
  take_memory(8);
  on_each_team(check_complex);
}

static void check_minmax_extremes(placed_team team) {
  source[0] = team.me == team.size - 1 ? INT64_MIN : INT64_MAX;
  source[1] = team.me == 0 ? INT64_MAX : INT64_MIN;
  EXPECT_EQUAL(0, shmem_long_min_reduce(team.handle, dest, source, 1));
  EXPECT_EQUAL(INT64_MIN, dest[0]);
  EXPECT_EQUAL(0, shmem_long_max_reduce(team.handle, dest + 1, source + 1, 1));
  EXPECT_EQUAL(INT64_MAX, dest[1]);
}

TEST(extremes, "9.9.9.4, 9.9.9.5 max_reduce, min_reduce: the extreme values of a type") {
  take_memory(2);
  on_each_team(check_minmax_extremes);
}

/* ---- Sequences ------------------------------------------------------------------------------- */

/* A different collective on each of several teams in turn, with nothing but the collectives between
   them. */
static void one_of_each(placed_team team, int round) {
  long* to = dest + (ptrdiff_t)(round % 4) * 4 * suite_pe_count;
  long* from = source + (ptrdiff_t)(round % 4) * suite_pe_count;
  for (int i = 0; i < team.size; ++i) {
    from[i] = team.me * 100 + i + round;
  }
  EXPECT_EQUAL(0, shmem_long_fcollect(team.handle, to, from, 1));
  EXPECT_EQUAL(0, shmem_long_alltoall(team.handle, to + suite_pe_count, from, 1));
  EXPECT_EQUAL(0, shmem_long_sum_reduce(team.handle, to + 2 * (ptrdiff_t)suite_pe_count, from, 1));
  EXPECT_EQUAL(0, shmem_long_broadcast(team.handle, to + 3 * (ptrdiff_t)suite_pe_count, from, 1,
                                       team.size - 1));
  for (int pe = 0; pe < team.size; ++pe) {
    EXPECT_EQUAL(pe * 100 + round, to[pe]);
    EXPECT_EQUAL(pe * 100 + team.me + round, to[suite_pe_count + pe]);
  }
  EXPECT_EQUAL(50 * team.size * (team.size - 1) + round * team.size, to[2 * suite_pe_count]);
  EXPECT_EQUAL((team.size - 1) * 100 + round, to[3 * suite_pe_count]);
  shmem_team_sync(team.handle); /* all have read before memory is used again */
}

TEST(mixed_sequence,
     "9.9 collectives: different ones on different teams in turn, while PEs dawdle") {
  take_memory(16 * (size_t)suite_pe_count);
  placed_team teams[TEAM_COUNT];
  make_teams(teams);
  for (int round = 0; round < 18; ++round) {
    if (round % 6 == suite_me % 6) {
      suite_dawdle(round);
    }
    if (round % TEAM_COUNT == 0) {
      shmem_sync_all();
    }
    if (teams[round % TEAM_COUNT].handle != SHMEM_TEAM_INVALID) {
      one_of_each(teams[round % TEAM_COUNT], round);
    }
    shmem_sync_all();
  }
  destroy_teams(teams);
}

TEST(large_collectives, "9.9 collectives: of 100 KiB, on the world") {
  enum { COUNT = 12800 };

  long* from = suite_symmetric(COUNT * sizeof *from);
  long* to = suite_symmetric((COUNT + 1) * sizeof *to);
  for (size_t i = 0; i < COUNT; ++i) {
    from[i] = value_of(suite_me, 1, i) % 1000;
  }
  to[COUNT] = -7;
  shmem_barrier_all();
  EXPECT_EQUAL(0, shmem_long_sum_reduce(SHMEM_TEAM_WORLD, to, from, COUNT));
  size_t wrong = 0;
  for (size_t i = 0; i < COUNT; ++i) {
    long sum = 0;
    for (int pe = 0; pe < suite_pe_count; ++pe) {
      sum += value_of(pe, 1, i) % 1000;
    }
    wrong += sum != to[i];
  }
  EXPECT_EQUAL(0, wrong);
  shmem_barrier_all();
  EXPECT_EQUAL(0, shmem_long_broadcast(SHMEM_TEAM_WORLD, to, from, COUNT, suite_pe_count - 1));
  wrong = 0;
  for (size_t i = 0; i < COUNT; ++i) {
    wrong += to[i] != value_of(suite_pe_count - 1, 1, i) % 1000;
  }
  shmem_barrier_all();
  const size_t share = COUNT / (size_t)suite_pe_count;
  EXPECT_EQUAL(0, shmem_long_fcollect(SHMEM_TEAM_WORLD, to, from, share));
  for (size_t i = 0; i < share * (size_t)suite_pe_count; ++i) {
    wrong += to[i] != value_of((int)(i / share), 1, i % share) % 1000;
  }
  EXPECT_EQUAL(0, wrong);
  EXPECT_EQUAL(-7, to[COUNT]);
}
