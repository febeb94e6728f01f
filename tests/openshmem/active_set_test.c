/* 9.9, deprecated: collectives of active sets, which meet in work arrays of the user. */
#include <stdlib.h>
#include <string.h>

#include "tests/openshmem/suite.h"

typedef struct active_set {
  int start;
  int log_stride;
  int size;
} active_set;

/* The place of this PE in the set; -1 if it is not in it. */
static int place_in(active_set set) {
  const int offset = suite_me - set.start;
  const int stride = 1 << set.log_stride;
  const int is_member = offset >= 0 && offset % stride == 0 && offset / stride < set.size;
  return is_member ? offset / stride : -1;
}

static int member(active_set set, int place) {
  return set.start + place * (1 << set.log_stride);
}

enum { SETS = 5 };

static void make_sets(active_set* sets) {
  const int count = suite_pe_count;
  const active_set all[SETS] = {{0, 0, count},
                                {0, 1, (count + 1) / 2},
                                {count - 1, 3, 1},
                                {count > 1, 1, count > 1 ? count / 2 : 1},
                                {count / 3, 0, count - count / 3}};
  memcpy(sets, all, sizeof all);
}

static long* sync_array; /* SHMEM_SYNC_SIZE words: enough for any of them */
static long* barrier_array;
static uint64_t* source;
static uint64_t* dest;

static void take_memory(void) {
  sync_array = suite_symmetric(SHMEM_SYNC_SIZE * sizeof *sync_array);
  barrier_array = suite_symmetric(SHMEM_BARRIER_SYNC_SIZE * sizeof *barrier_array);
  source = suite_symmetric(2000 * sizeof *source);
  dest = suite_symmetric(2000 * sizeof *dest);
  for (int i = 0; i < SHMEM_BARRIER_SYNC_SIZE; ++i) {
    barrier_array[i] = SHMEM_SYNC_VALUE;
  }
  for (int i = 0; i < SHMEM_SYNC_SIZE; ++i) {
    sync_array[i] = SHMEM_SYNC_VALUE;
  }
  shmem_barrier_all();
}

static void expect_sync_restored(void) {
  shmem_barrier_all();
  int wrong = 0;
  for (int i = 0; i < SHMEM_SYNC_SIZE; ++i) {
    wrong += sync_array[i] != SHMEM_SYNC_VALUE;
  }
  EXPECT_EQUAL(0, wrong);
  shmem_barrier_all();
}

/* Calls `check` on each set that this PE is in, twice, and looks at the work array. */
static void on_each_set(void (*check)(active_set set, int me)) {
  active_set sets[SETS];
  make_sets(sets);
  take_memory();
  for (int i = 0; i < 2 * SETS; ++i) {
    const active_set set = sets[i % SETS];
    memset(dest, 0xff, 2000 * sizeof *dest);
    shmem_barrier_all();
    if (place_in(set) >= 0) {
      check(set, place_in(set));
    }
    expect_sync_restored();
  }
}

/* Between two collectives that use the same work array. */
static void barrier_of(active_set set) {
  shmem_barrier(set.start, set.log_stride, set.size, barrier_array);
}

static uint64_t value_of(int place, size_t position) {
  return suite_random_of((uint64_t)place * 65536 + position);
}

static void fill(int place, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    source[i] = value_of(place, i);
  }
}

static void check_barrier(active_set set, int me) {
  for (uint64_t round = 1; round <= 6; ++round) {
    suite_dawdle((int)round);
    for (int place = 0; place < set.size; ++place) {
      shmem_uint64_p(&dest[me], round, member(set, place));
    }
    shmem_barrier(set.start, set.log_stride, set.size, sync_array);
    for (int place = 0; place < set.size; ++place) {
      EXPECT(dest[place] == round);
    }
    shmem_barrier(set.start, set.log_stride, set.size, sync_array);
  }
}

TEST(set_barrier, "9.9.2 barrier: completes puts and waits for all of the active set") {
  on_each_set(check_barrier);
}

static void check_set_sync(active_set set, int me) {
  for (uint64_t round = 1; round <= 6; ++round) {
    for (int place = 0; place < set.size; ++place) {
      shmem_uint64_p(&dest[me], round, member(set, place));
    }
    shmem_quiet();
    shmem_sync(set.start, set.log_stride, set.size, sync_array);
    for (int place = 0; place < set.size; ++place) {
      EXPECT(dest[place] >= round && dest[place] != UINT64_MAX);
    }
  }
}

TEST(set_sync, "9.9.3 sync: waits for all of the active set") {
  on_each_set(check_set_sync);
}

static void check_set_broadcast(active_set set, int me) {
  const int root = set.size / 2;
  fill(me, 33);
  shmem_broadcast64(dest, source, 33, root, set.start, set.log_stride, set.size, sync_array);
  for (size_t i = 0; i < 33; ++i) {
    EXPECT(dest[i] == (me == root ? UINT64_MAX : value_of(root, i)));
  }
  EXPECT(dest[33] == UINT64_MAX);
  barrier_of(set);
  uint32_t* to = (uint32_t*)(dest + 100);
  shmem_broadcast32(to, source, 5, root, set.start, set.log_stride, set.size, sync_array);
  const uint64_t expected[3] = {value_of(root, 0), value_of(root, 1), value_of(root, 2)};
  EXPECT(me == root ? to[0] == UINT32_MAX : memcmp(to, expected, 5 * sizeof *to) == 0);
  EXPECT(to[5] == UINT32_MAX);
}

TEST(set_broadcast, "9.9.7 broadcast32, broadcast64: to all of the set but the root") {
  on_each_set(check_set_broadcast);
}

static void check_set_fcollect(active_set set, int me) {
  fill(me, 20);
  shmem_fcollect64(dest, source, 7, set.start, set.log_stride, set.size, sync_array);
  for (int place = 0; place < set.size; ++place) {
    for (size_t i = 0; i < 7; ++i) {
      EXPECT(dest[(size_t)place * 7 + i] == value_of(place, i));
    }
  }
  EXPECT(dest[set.size * 7] == UINT64_MAX);
}

TEST(set_fcollect, "9.9.8 fcollect64: the sources of the set, in its order") {
  on_each_set(check_set_fcollect);
}

static void check_set_collect(active_set set, int me) {
  const size_t mine = (size_t)(me * 3 % 5);
  fill(me, mine);
  shmem_collect64(dest, source, mine, set.start, set.log_stride, set.size, sync_array);
  size_t position = 0;
  for (int place = 0; place < set.size; ++place) {
    for (size_t i = 0; i < (size_t)(place * 3 % 5); ++i) {
      EXPECT(dest[position++] == value_of(place, i));
    }
  }
  EXPECT(dest[position] == UINT64_MAX);
}

TEST(set_collect, "9.9.8 collect64: lengths that differ, also 0") {
  on_each_set(check_set_collect);
}

/* 32-bit elements: the halves of the 64-bit values. */
static void check_narrow_collects(active_set set, int me) {
  uint32_t* to = (uint32_t*)dest;
  uint32_t* from = (uint32_t*)source;
  for (size_t i = 0; i < 5; ++i) {
    from[i] = (uint32_t)value_of(me, i);
  }
  shmem_fcollect32(to, from, 5, set.start, set.log_stride, set.size, sync_array);
  for (int i = 0; i < set.size * 5; ++i) {
    EXPECT_EQUAL((uint32_t)value_of(i / 5, (size_t)(i % 5)), to[i]);
  }
  barrier_of(set);
  shmem_collect32(to + 500, from, (size_t)(me % 3), set.start, set.log_stride, set.size,
                  sync_array);
  size_t position = 500;
  for (int place = 0; place < set.size; ++place) {
    for (int i = 0; i < place % 3; ++i) {
      EXPECT_EQUAL((uint32_t)value_of(place, (size_t)i), to[position++]);
    }
  }
  EXPECT_EQUAL(UINT32_MAX, to[position]);
}

TEST(set_collect_narrow, "9.9.8 fcollect32, collect32: elements of 4 bytes") {
  on_each_set(check_narrow_collects);
}

static void check_set_alltoall(active_set set, int me) {
  fill(me, 5 * (size_t)set.size);
  shmem_alltoall64(dest, source, 5, set.start, set.log_stride, set.size, sync_array);
  for (int place = 0; place < set.size; ++place) {
    for (size_t i = 0; i < 5; ++i) {
      EXPECT(dest[(size_t)place * 5 + i] == value_of(place, (size_t)me * 5 + i));
    }
  }
  EXPECT(dest[set.size * 5] == UINT64_MAX);
  barrier_of(set);
  uint32_t* to = (uint32_t*)(dest + 1000);
  uint32_t* from = (uint32_t*)(source + 1000);
  for (int i = 0; i < set.size; ++i) {
    from[i] = (uint32_t)(me * 100 + i);
  }
  shmem_alltoall32(to, from, 1, set.start, set.log_stride, set.size, sync_array);
  for (int place = 0; place < set.size; ++place) {
    EXPECT_EQUAL(place * 100 + me, to[place]);
  }
  EXPECT_EQUAL(UINT32_MAX, to[set.size]);
}

TEST(set_alltoall, "9.9.5 alltoall32, alltoall64: block l of PE k becomes block k of PE l") {
  on_each_set(check_set_alltoall);
}

static void check_set_alltoalls(active_set set, int me) {
  const size_t size = (size_t)set.size;
  fill(me, 9 * size);
  shmem_alltoalls64(dest, source, 2, 3, 3, set.start, set.log_stride, set.size, sync_array);
  for (size_t i = 0; i < 6 * size; ++i) {
    const size_t there = ((size_t)me * 3 + i / 2 % 3) * 3;
    EXPECT(dest[i] == (i % 2 ? UINT64_MAX : value_of((int)(i / 6), there)));
  }
  barrier_of(set);
  uint32_t* to = (uint32_t*)(dest + 1000);
  uint32_t* from = (uint32_t*)(source + 1000);
  for (int i = 0; i < 2 * set.size; ++i) {
    from[i] = (uint32_t)(me * 100 + i);
  }
  shmem_alltoalls32(to, from, 3, 2, 1, set.start, set.log_stride, set.size, sync_array);
  for (int i = 0; i < 3 * set.size; ++i) {
    EXPECT_EQUAL(i % 3 ? UINT32_MAX : (uint32_t)(i / 3 * 100 + 2 * me), to[i]);
  }
}

TEST(set_alltoalls, "9.9.6 alltoalls32, alltoalls64: elements at their strides") {
  on_each_set(check_set_alltoalls);
}

static void check_set_sum(active_set set, int me) {
  enum { COUNT = 50 };

  static const size_t kWork =
      COUNT / 2 + 1 > SHMEM_REDUCE_MIN_WRKDATA_SIZE ? COUNT / 2 + 1 : SHMEM_REDUCE_MIN_WRKDATA_SIZE;
  int* from = (int*)source;
  int* to = (int*)dest;
  int* work = (int*)(source + 500);
  EXPECT(kWork <= 3000);
  for (int i = 0; i < COUNT; ++i) {
    from[i] = me * 10 + i;
  }
  shmem_int_sum_to_all(to, from, COUNT, set.start, set.log_stride, set.size, work, sync_array);
  for (int i = 0; i < COUNT; ++i) {
    EXPECT_EQUAL(5 * set.size * (set.size - 1) + i * set.size, to[i]);
  }
  EXPECT_EQUAL(-1, to[COUNT]);
  barrier_of(set);
  shmem_int_max_to_all(from, from, COUNT, set.start, set.log_stride, set.size, work, sync_array);
  for (int i = 0; i < COUNT; ++i) {
    EXPECT_EQUAL((set.size - 1) * 10 + i, from[i]);
  }
}

TEST(set_reductions, "9.9.9 sum_to_all, max_to_all: over the active set, also in place") {
  on_each_set(check_set_sum);
}

TEST(alternating_arrays,
     "9.9 active sets: back to back with two work arrays in turn, without a barrier") {
  long* arrays = suite_symmetric(2 * SHMEM_REDUCE_SYNC_SIZE * sizeof *arrays);
  long* from = suite_symmetric(2 * sizeof *from);
  long* to = suite_symmetric(2 * sizeof *to);
  long* work = suite_symmetric(2 * SHMEM_REDUCE_MIN_WRKDATA_SIZE * sizeof *work);
  for (int i = 0; i < 2 * SHMEM_REDUCE_SYNC_SIZE; ++i) {
    arrays[i] = SHMEM_SYNC_VALUE;
  }
  shmem_barrier_all();
  for (int round = 0; round < 30; ++round) {
    const int half = round % 2;
    if (round % 7 == suite_me % 7) {
      suite_dawdle(round);
    }
    from[half] = suite_me + round;
    shmem_long_sum_to_all(&to[half], &from[half], 1, 0, 0, suite_pe_count,
                          work + (ptrdiff_t)half * SHMEM_REDUCE_MIN_WRKDATA_SIZE,
                          arrays + (ptrdiff_t)half * SHMEM_REDUCE_SYNC_SIZE);
    EXPECT_EQUAL(suite_pe_count * (suite_pe_count - 1) / 2 + round * suite_pe_count, to[half]);
  }
}
