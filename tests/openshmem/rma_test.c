/* 9.6: put, get, p, g and their strided and nonblocking forms: which bytes move, and which do
   not. */
#include <stdlib.h>
#include <string.h>

#include "tests/openshmem/suite.h"

static const size_t kSizes[] = {0,  1,  2,  3,  5,  7,  8,   9,   15,   16,
                                17, 31, 33, 63, 64, 65, 127, 255, 1023, 4097};

enum { SIZE_COUNT = sizeof kSizes / sizeof kSizes[0], POISON = 0xA5, GUARD = 16 };

static unsigned char byte_of(int pe, size_t position) {
  return (unsigned char)suite_random_of((uint64_t)pe * 100000 + position);
}

static void fill(unsigned char* bytes, size_t count, int pe) {
  for (size_t i = 0; i < count; ++i) {
    bytes[i] = byte_of(pe, i);
  }
}

/* `count` bytes of PE `pe` stand at `bytes`, and poison around them. */
static void expect_between_guards(const unsigned char* bytes, size_t count, int pe) {
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i) {
    wrong += bytes[i] != byte_of(pe, i);
  }
  EXPECT_EQUAL(0, wrong);
  for (size_t i = 0; i < GUARD; ++i) {
    EXPECT_EQUAL(POISON, bytes[count + i]);
    EXPECT_EQUAL(POISON, bytes[(ptrdiff_t)i - GUARD]);
  }
}

static void put_every_size_at(unsigned char* target, const unsigned char* source, size_t offset) {
  for (size_t s = 0; s < SIZE_COUNT; ++s) {
    memset(target, POISON, 8192);
    shmem_barrier_all();
    shmem_putmem(target + GUARD + offset, source, kSizes[s], suite_right());
    shmem_barrier_all();
    expect_between_guards(target + GUARD + offset, kSizes[s], suite_left());
  }
}

TEST(put_keeps_its_bounds,
     "9.6.1.1 put: bytes beyond nelems stay untouched, at any size and alignment") {
  unsigned char* target = suite_symmetric(8192);
  unsigned char source[4097];
  fill(source, sizeof source, suite_me);
  for (size_t offset = 0; offset < 8; offset += 3) {
    put_every_size_at(target, source, offset);
  }
}

TEST(get_keeps_its_bounds,
     "9.6.1.4 get: bytes beyond nelems stay untouched, at any size and alignment") {
  unsigned char* source = suite_symmetric(4200);
  unsigned char target[8192];
  fill(source + 3, 4097, suite_me);
  shmem_barrier_all();
  for (size_t s = 0; s < SIZE_COUNT; ++s) {
    memset(target, POISON, sizeof target);
    shmem_getmem(target + GUARD + s % 5, source + 3, kSizes[s], suite_right());
    expect_between_guards(target + GUARD + s % 5, kSizes[s], suite_right());
  }
}

static const int kConstants[5] = {11, 22, 33, 44, 55};

TEST(put_from_anywhere,
     "9.6.1.1 put: the source may be on the stack, allocated, constant or symmetric") {
  int* target = suite_symmetric(20 * sizeof *target);
  int* symmetric = suite_symmetric(5 * sizeof *symmetric);
  int* allocated = malloc(5 * sizeof *allocated);
  int stack[5];
  for (int i = 0; i < 5; ++i) {
    stack[i] = 100 + i;
    allocated[i] = 200 + i;
    symmetric[i] = 300 + i;
  }
  shmem_int_put(target, stack, 5, suite_right());
  shmem_int_put(target + 5, allocated, 5, suite_right());
  shmem_int_put(target + 10, symmetric, 5, suite_right());
  shmem_int_put(target + 15, kConstants, 5, suite_right());
  free(allocated);
  shmem_barrier_all();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQUAL(100 + i, target[i]);
    EXPECT_EQUAL(200 + i, target[5 + i]);
    EXPECT_EQUAL(300 + i, target[10 + i]);
    EXPECT_EQUAL(kConstants[i], target[15 + i]);
  }
}

TEST(put_source_is_free, "9.6.1.1 put: the source may be changed when the call returns") {
  long* target = suite_symmetric(64 * 16 * sizeof *target);
  long source[16];
  for (int round = 0; round < 64; ++round) {
    for (int i = 0; i < 16; ++i) {
      source[i] = round * 1000 + i;
    }
    shmem_long_put(target + (ptrdiff_t)round * 16, source, 16, suite_right());
  }
  memset(source, 0, sizeof source);
  shmem_barrier_all();
  for (int i = 0; i < 64 * 16; ++i) {
    EXPECT_EQUAL(i / 16 * 1000 + i % 16, target[i]);
  }
}

TEST(large_put_and_get, "9.6.1 put, get: 256 KiB arrive whole, and come back") {
  enum { BYTES = 256 * 1024 };

  unsigned char* target = suite_symmetric(BYTES);
  unsigned char* local = malloc(BYTES);
  fill(local, BYTES, suite_me);
  shmem_putmem(target, local, BYTES, suite_right());
  shmem_barrier_all();
  fill(local, BYTES, suite_left());
  EXPECT(memcmp(target, local, BYTES) == 0);
  memset(local, POISON, BYTES);
  shmem_getmem(local, target, BYTES, suite_right()); /* what this PE put there */
  unsigned char* expected = malloc(BYTES);
  fill(expected, BYTES, suite_me);
  EXPECT(memcmp(local, expected, BYTES) == 0);
  free(expected);
  free(local);
}

TEST(everyone_to_everyone, "9.6.1 put, get: between all pairs of PEs, this PE included") {
  enum { COUNT = 33 };

  int* target = suite_symmetric(sizeof(int) * COUNT * (size_t)suite_pe_count);
  int block[COUNT];
  for (int pe = 0; pe < suite_pe_count; ++pe) {
    for (int i = 0; i < COUNT; ++i) {
      block[i] = suite_me * 10000 + pe * 100 + i;
    }
    shmem_int_put(target + (ptrdiff_t)suite_me * COUNT, block, COUNT, pe);
  }
  shmem_barrier_all();
  for (int pe = 0; pe < suite_pe_count; ++pe) {
    shmem_int_get(block, target + (ptrdiff_t)suite_me * COUNT, COUNT, pe);
    for (int i = 0; i < COUNT; ++i) {
      EXPECT_EQUAL(pe * 10000 + suite_me * 100 + i, target[pe * COUNT + i]);
      EXPECT_EQUAL(suite_me * 10000 + pe * 100 + i, block[i]);
    }
  }
}

/* Element i of block b of a strided area, or -1 in a gap. */
static int block_value(int spot, int stride, int block, int blocks) {
  const int b = spot / stride;
  const int i = spot % stride;
  return b < blocks && i < block ? 1 + b * block + i : -1;
}

TEST(blocks_are_strided, "1.6, 9.6.1.4, 9.6.1.8 ibput, ibget: blocks at strides; the gaps stay") {
  enum { AREA = 64 };

  int* area = suite_symmetric(AREA * sizeof *area);
  int local[AREA];
  for (int block = 1; block <= 4; ++block) {
    for (int stride = block; stride <= 7; ++stride) {
      const int blocks = 8;
      for (int i = 0; i < AREA; ++i) {
        area[i] = -1;
        local[i] = block_value(i, 6 + block, block, 5);
      }
      shmem_barrier_all();
      shmem_int_ibput(area, local, stride, 6 + block, (size_t)block, 5, suite_right());
      shmem_barrier_all();
      for (int i = 0; i < AREA; ++i) {
        EXPECT_EQUAL(block_value(i, stride, block, 5), area[i]);
        local[i] = -1;
      }
      shmem_int_ibget(local, area, 5, stride, (size_t)block, 5, suite_left());
      for (int i = 0; i < AREA && i < 5 * blocks; ++i) {
        EXPECT_EQUAL(block_value(i, 5, block, 5), local[i]);
      }
      shmem_barrier_all();
    }
  }
}

TEST(blocks_may_be_large, "1.6, 9.6.1.4, 9.6.1.8 ibput, ibget: blocks of 40000 bytes; empty ones") {
  enum { BLOCK = 10000, STRIDE = 12000, BLOCKS = 6 };

  int* area = shmem_calloc((size_t)STRIDE * BLOCKS, sizeof *area);
  int* local = malloc((size_t)BLOCK * BLOCKS * sizeof *local);
  for (int i = 0; i < BLOCK * BLOCKS; ++i) {
    local[i] = suite_me * 7 + i;
  }
  shmem_int_ibput(area, local, STRIDE, BLOCK, BLOCK, BLOCKS, suite_right());
  memset(local, 0, (size_t)BLOCK * BLOCKS * sizeof *local); /* the source may be reused */
  shmem_barrier_all();
  int wrong = 0;
  for (int i = 0; i < STRIDE * BLOCKS; ++i) {
    const int at = i / STRIDE * BLOCK + i % STRIDE;
    wrong += area[i] != (i % STRIDE < BLOCK ? suite_left() * 7 + at : 0);
  }
  EXPECT_EQUAL(0, wrong);
  shmem_int_ibget(local, area, BLOCK, STRIDE, BLOCK, BLOCKS, suite_right());
  for (int i = 0; i < BLOCK * BLOCKS; ++i) {
    wrong += local[i] != suite_me * 7 + i;
  }
  EXPECT_EQUAL(0, wrong);
  shmem_int_ibput(area, local, 1, 1, 0, 5, suite_right());
  shmem_int_ibget(local, area, 1, 1, 1, 0, suite_right());
  shmem_barrier_all();
  free(local);
  shmem_free(area);
}

TEST(single_elements, "9.6.1.2 p and 9.6.1.5 g: single elements to and from every PE") {
  double* slots = suite_symmetric(sizeof(double) * (size_t)suite_pe_count);
  for (int pe = 0; pe < suite_pe_count; ++pe) {
    shmem_double_p(&slots[suite_me], suite_me + pe / 16.0, pe);
  }
  shmem_barrier_all();
  for (int pe = 0; pe < suite_pe_count; ++pe) {
    EXPECT_EQUAL(pe + suite_me / 16.0, slots[pe]);
    EXPECT_EQUAL(suite_me + pe / 16.0, shmem_double_g(&slots[suite_me], pe));
  }
}

typedef struct strides {
  ptrdiff_t target;
  ptrdiff_t source;
  size_t count;
} strides;

static const strides kStrides[] = {{1, 1, 7},  {1, 3, 9}, {2, 1, 5},
                                   {5, 2, 11}, {3, 3, 1}, {7, 4, 0}};

enum { STRIDES_COUNT = sizeof kStrides / sizeof kStrides[0], STRIDED_LONGS = 80 };

static void expect_strided(const long* array, strides s, long base) {
  for (ptrdiff_t i = 0; i < STRIDED_LONGS; ++i) {
    const int is_target = i % s.target == 0 && i / s.target < (ptrdiff_t)s.count;
    EXPECT_EQUAL(is_target ? base + i / s.target * s.source : -1, array[i]);
  }
}

static void fill_longs(long* array, long base, int is_constant) {
  for (long i = 0; i < STRIDED_LONGS; ++i) {
    array[i] = is_constant ? base : base + i;
  }
}

TEST(strided_put, "9.6.1.3 iput: elements at their strides; the gaps stay untouched") {
  long* target = suite_symmetric(STRIDED_LONGS * sizeof *target);
  long source[STRIDED_LONGS];
  fill_longs(source, suite_me * 1000L, 0);
  for (int s = 0; s < STRIDES_COUNT; ++s) {
    const strides now = kStrides[s];
    fill_longs(target, -1, 1);
    shmem_barrier_all();
    shmem_long_iput(target, source, now.target, now.source, now.count, suite_right());
    shmem_barrier_all();
    expect_strided(target, now, suite_left() * 1000L);
  }
}

TEST(strided_get, "9.6.1.6 iget: elements at their strides; the gaps stay untouched") {
  long* source = suite_symmetric(STRIDED_LONGS * sizeof *source);
  long target[STRIDED_LONGS];
  fill_longs(source, suite_me * 1000L, 0);
  shmem_barrier_all();
  for (int s = 0; s < STRIDES_COUNT; ++s) {
    const strides now = kStrides[s];
    fill_longs(target, -1, 1);
    shmem_long_iget(target, source, now.target, now.source, now.count, suite_right());
    expect_strided(target, now, suite_right() * 1000L);
  }
}

TEST(nonblocking_put, "9.6.2.1 put_nbi: complete after quiet, many at a time") {
  enum { COUNT = 100 };

  int* target = suite_symmetric(COUNT * sizeof *target);
  int source[COUNT];
  for (int i = 0; i < COUNT; ++i) {
    source[i] = suite_me * 1000 + i;
    shmem_int_put_nbi(&target[i], &source[i], 1, suite_right());
  }
  shmem_quiet();
  memset(source, POISON, sizeof source); /* allowed now */
  shmem_sync_all();
  for (int i = 0; i < COUNT; ++i) {
    EXPECT_EQUAL(suite_left() * 1000 + i, target[i]);
  }
}

TEST(nonblocking_get, "9.6.2.2 get_nbi: complete after quiet, many at a time") {
  enum { COUNT = 100 };

  int* source = suite_symmetric(COUNT * sizeof *source);
  int target[COUNT];
  memset(target, POISON, sizeof target);
  for (int i = 0; i < COUNT; ++i) {
    source[i] = suite_me * 1000 + i;
  }
  shmem_barrier_all();
  for (int i = 0; i < COUNT; ++i) {
    shmem_int_get_nbi(&target[i], &source[i], 1, suite_right());
  }
  shmem_quiet();
  for (int i = 0; i < COUNT; ++i) {
    EXPECT_EQUAL(suite_right() * 1000 + i, target[i]);
  }
}

TEST(barrier_completes_nbi, "9.9.1 barrier_all: completes nonblocking puts") {
  enum { COUNT = 20000 };

  char* target = suite_symmetric(COUNT);
  char* source = malloc(COUNT);
  memset(source, 1 + suite_me, COUNT);
  shmem_putmem_nbi(target, source, COUNT, suite_right());
  shmem_barrier_all();
  size_t wrong = 0;
  for (int i = 0; i < COUNT; ++i) {
    wrong += target[i] != 1 + suite_left();
  }
  EXPECT_EQUAL(0, wrong);
  free(source);
}
