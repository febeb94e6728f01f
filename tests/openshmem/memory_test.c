/* 9.3: symmetric memory: what the calls return, hold and keep; and 3: globals and statics as
   symmetric objects. */
#include <stdlib.h>
#include <string.h>

#include "tests/openshmem/suite.h"

/* The block is usable from end to end on all PEs. */
static void expect_usable(unsigned char* block, size_t bytes) {
  EXPECT(block != NULL);
  if (!block) {
    return;
  }
  memset(block, 0, bytes);
  shmem_barrier_all();
  shmem_uchar_p(&block[0], (unsigned char)(suite_me + 1), suite_right());
  shmem_uchar_p(&block[bytes - 1], (unsigned char)(suite_me + 1), suite_right());
  shmem_barrier_all();
  EXPECT_EQUAL(suite_left() + 1, block[0]);
  EXPECT_EQUAL(suite_left() + 1, block[bytes - 1]);
}

TEST(malloc_sizes, "9.3.1 malloc: blocks of many sizes are symmetric, aligned and apart") {
  const size_t sizes[] = {1, 7, 8, 100, 4096, 65537};
  unsigned char* blocks[6];
  for (int i = 0; i < 6; ++i) {
    blocks[i] = shmem_malloc(sizes[i]);
    EXPECT_EQUAL(0, (uintptr_t)blocks[i] % sizeof(long));
  }
  for (int i = 0; i < 6; ++i) {
    expect_usable(blocks[i], sizes[i]);
    for (int k = 0; k < i; ++k) {
      EXPECT(blocks[k] + sizes[k] <= blocks[i] || blocks[i] + sizes[i] <= blocks[k]);
    }
  }
  for (int i = 0; i < 6; ++i) {
    shmem_free(blocks[(i * 5 + 2) % 6]);
  }
}

TEST(malloc_nothing, "9.3.1 malloc: 0 bytes are a null pointer, and so is what is too much") {
  EXPECT(shmem_malloc(0) == NULL);
  EXPECT(shmem_calloc(0, 8) == NULL);
  EXPECT(shmem_calloc(8, 0) == NULL);
  EXPECT(shmem_malloc((size_t)1 << 50) == NULL);
  EXPECT(shmem_calloc((size_t)1 << 40, (size_t)1 << 40) == NULL); /* the product overflows */
  shmem_free(NULL);
}

TEST(calloc_zeroes, "9.3.3 calloc: zeroes, also memory that was used before") {
  for (int round = 0; round < 3; ++round) {
    unsigned char* block = shmem_calloc(1000, 3);
    EXPECT(block != NULL);
    size_t wrong = 0;
    for (size_t i = 0; i < 3000; ++i) {
      wrong += block[i] != 0;
    }
    EXPECT_EQUAL(0, wrong);
    memset(block, 0xEE, 3000);
    shmem_free(block);
  }
}

TEST(calloc_then_put, "9.3.3 calloc: a put right after it is not overwritten by the zeroing") {
  int* words = shmem_calloc((size_t)suite_pe_count, sizeof *words);
  for (int pe = 0; pe < suite_pe_count; ++pe) {
    shmem_int_p(&words[suite_me], suite_me + 1, pe);
  }
  shmem_barrier_all();
  for (int pe = 0; pe < suite_pe_count; ++pe) {
    EXPECT_EQUAL(pe + 1, words[pe]);
  }
  shmem_free(words);
}

TEST(align_aligns, "9.3.1 align: every power of two up to 64 KiB") {
  for (size_t alignment = sizeof(void*); alignment <= 65536; alignment *= 2) {
    unsigned char* block = shmem_align(alignment, 100);
    EXPECT_EQUAL(0, (uintptr_t)block % alignment);
    if (alignment % 4096 == 0 || alignment == sizeof(void*)) {
      expect_usable(block, 100);
    }
    shmem_free(block);
  }
  EXPECT(shmem_align(64, 0) == NULL);
}

/* The heap has 256 MiB unless somebody says otherwise. */
TEST(align_large,
     "9.3.1 align: every power of two up to half of the heap, the same object on all PEs") {
  const size_t half = (size_t)128 << 20;
  for (size_t alignment = sizeof(void*); alignment <= half; alignment *= 2) {
    unsigned char* block = shmem_align(alignment, 4096);
    EXPECT(block != NULL);
    EXPECT_EQUAL(0, (uintptr_t)block % alignment);
    if (alignment > 65536) {
      expect_usable(block, 4096);
    }
    shmem_free(block);
  }
  EXPECT(shmem_align((size_t)1 << 50, 8) == NULL); /* more than any heap has */
}

static void expect_bytes(const unsigned char* block, size_t count, int seed) {
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i) {
    wrong += block[i] != (unsigned char)(i * 7 + (size_t)seed);
  }
  EXPECT_EQUAL(0, wrong);
}

TEST(realloc_keeps, "9.3.1 realloc: keeps the contents when it grows and when it shrinks") {
  unsigned char* block = shmem_realloc(NULL, 500);
  EXPECT(block != NULL);
  for (size_t i = 0; i < 500; ++i) {
    block[i] = (unsigned char)(i * 7 + (size_t)suite_me);
  }
  unsigned char* between = shmem_malloc(64); /* so that it cannot grow in place */
  block = shmem_realloc(block, 50000);
  expect_bytes(block, 500, suite_me);
  expect_usable(block + 1000, 49000);
  expect_bytes(block, 500, suite_me);
  block = shmem_realloc(block, 100);
  expect_bytes(block, 100, suite_me);
  EXPECT(shmem_realloc(block, 0) == NULL); /* frees it */
  shmem_free(between);
}

TEST(malloc_hints, "9.3.2 malloc_with_hints: with each hint, memory like any other") {
  const long hints[] = {0, SHMEM_MALLOC_ATOMICS_REMOTE, SHMEM_MALLOC_SIGNAL_REMOTE,
                        SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE};
  for (int i = 0; i < 4; ++i) {
    unsigned char* block = shmem_malloc_with_hints(1000, hints[i]);
    expect_usable(block, 1000);
    shmem_uint64_atomic_add((uint64_t*)(block + 8), 5, suite_right());
    shmem_barrier_all();
    EXPECT(*(uint64_t*)(block + 8) == 5);
    shmem_free(block);
  }
  EXPECT(shmem_malloc_with_hints(0, SHMEM_MALLOC_ATOMICS_REMOTE) == NULL);
}

TEST(free_makes_room, "9.3.1 free: what was freed can be had again, many times over") {
  for (int round = 0; round < 60; ++round) {
    void* first = shmem_malloc((size_t)1 << 20);
    void* second = shmem_malloc(100 + (size_t)round);
    EXPECT(first != NULL && second != NULL);
    shmem_free(first);
    shmem_free(second);
  }
}

TEST(free_waits, "9.3.1 free: nobody's memory goes while others still put into it") {
  for (int round = 0; round < 5; ++round) {
    int* words = shmem_malloc(100 * sizeof *words);
    suite_dawdle(round);
    for (int i = 0; i < 100; ++i) {
      shmem_int_p(&words[i], i, suite_right());
    }
    shmem_free(words);
    int* next = shmem_calloc(100, sizeof *next); /* the same place again */
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQUAL(0, next[i]);
    }
    shmem_free(next);
  }
}

/* ---- 3: globals and statics ------------------------------------------------------------------ */

long global_zeroed[300];
long global_initialized[300] = {1, 2, 3};
static int static_zeroed;
static int static_initialized = -5;
static uint64_t static_signal;

static long get_first_global(int pe) {
  return shmem_long_g(&global_initialized[2], pe);
}

TEST(globals_are_symmetric,
     "3 memory model: global arrays, zeroed and initialised, are symmetric") {
  long local[300];
  EXPECT_EQUAL(3, get_first_global(suite_right()));
  shmem_barrier_all();
  for (long i = 0; i < 300; ++i) {
    local[i] = suite_me * 1000L + i;
  }
  shmem_long_put(global_zeroed, local, 300, suite_right());
  shmem_long_put(global_initialized, local, 300, suite_right());
  shmem_barrier_all();
  for (long i = 0; i < 300; ++i) {
    EXPECT_EQUAL(suite_left() * 1000L + i, global_zeroed[i]);
    EXPECT_EQUAL(suite_left() * 1000L + i, global_initialized[i]);
  }
  shmem_long_get(local, global_zeroed, 300, suite_right());
  EXPECT_EQUAL(suite_me * 1000L + 299, local[299]);
}

TEST(statics_are_symmetric,
     "3 memory model: static variables of a file and of a function are symmetric") {
  static long in_function = 17;
  EXPECT_EQUAL(-5, shmem_int_g(&static_initialized, suite_right()));
  EXPECT_EQUAL(17, shmem_long_g(&in_function, suite_right()));
  shmem_barrier_all();
  shmem_int_p(&static_initialized, suite_me, suite_right());
  shmem_int_atomic_add(&static_zeroed, suite_me + 1, 0);
  shmem_long_atomic_inc(&in_function, suite_right());
  shmem_barrier_all();
  EXPECT_EQUAL(suite_left(), static_initialized);
  EXPECT_EQUAL(18, in_function);
  if (suite_me == 0) {
    EXPECT_EQUAL(suite_pe_count * (suite_pe_count + 1) / 2, static_zeroed);
  }
}

TEST(global_and_heap,
     "9.8.3 put_signal: the data may be a global and the signal on the heap, and the reverse") {
  uint64_t* signal = suite_symmetric(sizeof *signal);
  long* target = suite_symmetric(300 * sizeof *target);
  long local[300];
  for (long i = 0; i < 300; ++i) {
    local[i] = suite_me - i;
  }
  shmem_long_put_signal(global_zeroed, local, 300, signal, 1, SHMEM_SIGNAL_SET, suite_right());
  shmem_long_put_signal(target, local, 300, &static_signal, 1, SHMEM_SIGNAL_SET, suite_right());
  shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 1);
  shmem_signal_wait_until(&static_signal, SHMEM_CMP_EQ, 1);
  for (long i = 0; i < 300; ++i) {
    EXPECT_EQUAL(suite_left() - i, global_zeroed[i]);
    EXPECT_EQUAL(suite_left() - i, target[i]);
  }
}

static long collect_source[4];
static long collect_dest[4 * 64];
static long global_lock;
static long global_guarded;

TEST(collectives_on_globals, "9.9 collectives: source and dest may be globals; 9.12 a lock too") {
  if (suite_pe_count > 64) {
    SKIP("made for up to 64 PEs");
  }
  for (int i = 0; i < 4; ++i) {
    collect_source[i] = suite_me * 10 + i;
  }
  EXPECT_EQUAL(0, shmem_long_fcollect(SHMEM_TEAM_WORLD, collect_dest, collect_source, 4));
  for (int i = 0; i < 4 * suite_pe_count; ++i) {
    EXPECT_EQUAL(i / 4 * 10 + i % 4, collect_dest[i]);
  }
  shmem_set_lock(&global_lock);
  shmem_long_p(&global_guarded, shmem_long_g(&global_guarded, 0) + 1, 0);
  shmem_clear_lock(&global_lock);
  shmem_barrier_all();
  EXPECT_EQUAL(suite_pe_count, shmem_long_g(&global_guarded, 0));
}
