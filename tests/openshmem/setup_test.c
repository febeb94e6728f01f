/* 9.1 setup and query, 9.2 the thread level, 6 the constants; and the deprecated names (annex
   F). */
#include <stdlib.h>
#include <string.h>

#include "tests/openshmem/suite.h"

TEST(numbers, "9.1.2, 9.1.3 my_pe, n_pes: 0 to n-1, each once") {
  int* seen = suite_symmetric(sizeof(int) * (size_t)suite_pe_count);
  EXPECT(suite_me >= 0 && suite_me < suite_pe_count);
  EXPECT_EQUAL(suite_me, shmem_my_pe());
  EXPECT_EQUAL(suite_pe_count, shmem_n_pes());
  for (int pe = 0; pe < suite_pe_count; ++pe) {
    shmem_int_p(&seen[suite_me], suite_me + 1, pe);
  }
  shmem_barrier_all();
  for (int pe = 0; pe < suite_pe_count; ++pe) {
    EXPECT_EQUAL(pe + 1, seen[pe]);
  }
}

TEST(pe_accessible, "9.1.6 pe_accessible: 1 for every PE, 0 for numbers that are none") {
  for (int pe = 0; pe < suite_pe_count; ++pe) {
    EXPECT_EQUAL(1, shmem_pe_accessible(pe));
  }
  EXPECT_EQUAL(0, shmem_pe_accessible(-1));
  EXPECT_EQUAL(0, shmem_pe_accessible(suite_pe_count));
}

static int global_word;

TEST(addr_accessible, "9.1.7 addr_accessible: heap and globals yes, stack and malloc no") {
  int* symmetric = suite_symmetric(sizeof *symmetric);
  int on_stack = 0;
  int* allocated = malloc(sizeof *allocated);
  for (int pe = 0; pe < suite_pe_count; ++pe) {
    EXPECT_EQUAL(1, shmem_addr_accessible(symmetric, pe));
    EXPECT_EQUAL(1, shmem_addr_accessible(&global_word, pe));
    EXPECT_EQUAL(0, shmem_addr_accessible(&on_stack, pe));
    EXPECT_EQUAL(0, shmem_addr_accessible(allocated, pe));
  }
  free(allocated);
}

TEST(ptr_reaches, "9.1.8 ptr: null, or the peer's object for loads and stores") {
  int* words = suite_symmetric(sizeof(int) * (size_t)suite_pe_count);
  int on_stack = 0;
  EXPECT(shmem_ptr(words, suite_me) == words);
  EXPECT(shmem_ptr(&on_stack, suite_right()) == NULL);
  words[0] = 0;
  shmem_barrier_all();
  int* peer = shmem_ptr(words, suite_right());
  if (peer) {
    peer[suite_me] = 100 + suite_me;
  } else {
    shmem_int_p(&words[suite_me], 100 + suite_me, suite_right());
  }
  shmem_barrier_all();
  EXPECT_EQUAL(100 + suite_left(), words[suite_left()]);
  if (peer) {
    EXPECT_EQUAL(peer[suite_me], shmem_int_g(&words[suite_me], suite_right()));
  }
}

TEST(version, "9.1.9 info_get_version: as the constants say") {
  int major = -1;
  int minor = -1;
  shmem_info_get_version(&major, &minor);
  EXPECT_EQUAL(SHMEM_MAJOR_VERSION, major);
  EXPECT_EQUAL(SHMEM_MINOR_VERSION, minor);
}

TEST(version_number, "6 constants: version 1.6, as a number that the preprocessor knows") {
#if SHMEM_MAJOR_VERSION != 1 || SHMEM_MINOR_VERSION != 6
  EXPECT(!"version 1.6");
#endif
}

TEST(query_initialized, "1.6, 9.1.5 query_initialized: nonzero between init and finalize") {
  int initialized = 0;
  shmem_query_initialized(&initialized);
  EXPECT(initialized != 0);
  shmem_init();
  shmem_finalize();
  initialized = 0;
  shmem_query_initialized(&initialized);
  EXPECT(initialized != 0);
}

TEST(nested_init,
     "1.6, 9.1.1, 9.1.4 init, init_thread, finalize: may be nested; only the last call ends") {
  long* word = suite_symmetric(sizeof *word);
  int provided = -1;
  shmem_init();
  EXPECT_EQUAL(0, shmem_init_thread(SHMEM_THREAD_SINGLE, &provided));
  EXPECT(provided >= SHMEM_THREAD_SINGLE && provided <= SHMEM_THREAD_MULTIPLE);
  shmem_finalize();
  shmem_finalize();
  EXPECT_EQUAL(suite_me, shmem_my_pe());
  shmem_long_p(word, 1, suite_right());
  shmem_barrier_all();
  EXPECT_EQUAL(1, *word);
}

TEST(nested_finalize, "1.6, 9.1.4 finalize: one that is not the last is a barrier") {
  long* word = suite_symmetric(sizeof *word);
  shmem_init();
  shmem_long_atomic_inc(word, suite_right());
  shmem_finalize();
  EXPECT_EQUAL(1, *word);
}

TEST(vendor, "9.1.10 info_get_name: SHMEM_VENDOR_STRING, shorter than SHMEM_MAX_NAME_LEN") {
  char name[SHMEM_MAX_NAME_LEN];
  memset(name, 'x', sizeof name);
  shmem_info_get_name(name);
  EXPECT(memchr(name, 0, sizeof name) != NULL);
  EXPECT(strcmp(name, SHMEM_VENDOR_STRING) == 0);
  EXPECT(strlen(name) > 0);
}

TEST(thread_level, "9.2.2 query_thread: one of the four levels, which are in order") {
  EXPECT(SHMEM_THREAD_SINGLE < SHMEM_THREAD_FUNNELED);
  EXPECT(SHMEM_THREAD_FUNNELED < SHMEM_THREAD_SERIALIZED);
  EXPECT(SHMEM_THREAD_SERIALIZED < SHMEM_THREAD_MULTIPLE);
  int level = -1;
  shmem_query_thread(&level);
  EXPECT(level >= SHMEM_THREAD_SINGLE && level <= SHMEM_THREAD_MULTIPLE);
}

/* Each must be usable where C wants an integer constant. */
enum {
  kSyncSize = SHMEM_SYNC_SIZE,
  kBarrier = SHMEM_BARRIER_SYNC_SIZE,
  kBroadcast = SHMEM_BCAST_SYNC_SIZE,
  kReduce = SHMEM_REDUCE_SYNC_SIZE,
  kCollect = SHMEM_COLLECT_SYNC_SIZE,
  kAlltoall = SHMEM_ALLTOALL_SYNC_SIZE,
  kAlltoalls = SHMEM_ALLTOALLS_SYNC_SIZE,
  kWork = SHMEM_REDUCE_MIN_WRKDATA_SIZE,
  kNameLength = SHMEM_MAX_NAME_LEN,
  kEqual = SHMEM_CMP_EQ,
  kHints = SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE,
};

static long static_sync[SHMEM_SYNC_SIZE] = {SHMEM_SYNC_VALUE};

TEST(sync_sizes, "6 constants: SHMEM_SYNC_SIZE covers every other work array; sizes are positive") {
  const int sizes[] = {kBarrier, kBroadcast, kReduce, kCollect, kAlltoall, kAlltoalls};
  for (int i = 0; i < 6; ++i) {
    EXPECT(sizes[i] > 0 && sizes[i] <= kSyncSize);
  }
  EXPECT(kWork > 0 && kNameLength > 0);
  EXPECT_EQUAL(SHMEM_SYNC_VALUE, static_sync[0]);
}

TEST(comparisons_differ, "6 constants: comparisons are different values") {
  const int cmp[] = {SHMEM_CMP_EQ, SHMEM_CMP_NE, SHMEM_CMP_GT,
                     SHMEM_CMP_GE, SHMEM_CMP_LT, SHMEM_CMP_LE};
  for (int i = 0; i < 6; ++i) {
    for (int k = 0; k < i; ++k) {
      EXPECT(cmp[i] != cmp[k]);
    }
  }
}

TEST(options_differ, "6 constants: options, hints and handles are different values") {
  EXPECT((SHMEM_CTX_SERIALIZED & SHMEM_CTX_PRIVATE) == 0);
  EXPECT((SHMEM_CTX_SERIALIZED & SHMEM_CTX_NOSTORE) == 0);
  EXPECT((SHMEM_CTX_PRIVATE & SHMEM_CTX_NOSTORE) == 0);
  EXPECT(SHMEM_CTX_SERIALIZED && SHMEM_CTX_PRIVATE && SHMEM_CTX_NOSTORE);
  EXPECT(SHMEM_MALLOC_ATOMICS_REMOTE != SHMEM_MALLOC_SIGNAL_REMOTE);
  EXPECT(SHMEM_CTX_DEFAULT != SHMEM_CTX_INVALID);
  EXPECT(kEqual == SHMEM_CMP_EQ && kHints != 0);
}

/* ---- Deprecated ------------------------------------------------------------------------------ */

TEST(old_constants,
     "annex F: the constants that start with _SHMEM_ are those without the underscore") {
  EXPECT_EQUAL(SHMEM_SYNC_VALUE, _SHMEM_SYNC_VALUE);
  EXPECT_EQUAL(SHMEM_BARRIER_SYNC_SIZE, _SHMEM_BARRIER_SYNC_SIZE);
  EXPECT_EQUAL(SHMEM_BCAST_SYNC_SIZE, _SHMEM_BCAST_SYNC_SIZE);
  EXPECT_EQUAL(SHMEM_COLLECT_SYNC_SIZE, _SHMEM_COLLECT_SYNC_SIZE);
  EXPECT_EQUAL(SHMEM_REDUCE_SYNC_SIZE, _SHMEM_REDUCE_SYNC_SIZE);
  EXPECT_EQUAL(SHMEM_REDUCE_MIN_WRKDATA_SIZE, _SHMEM_REDUCE_MIN_WRKDATA_SIZE);
  EXPECT_EQUAL(SHMEM_MAJOR_VERSION, _SHMEM_MAJOR_VERSION);
  EXPECT_EQUAL(SHMEM_MINOR_VERSION, _SHMEM_MINOR_VERSION);
  EXPECT_EQUAL(SHMEM_MAX_NAME_LEN, _SHMEM_MAX_NAME_LEN);
  EXPECT(strcmp(SHMEM_VENDOR_STRING, _SHMEM_VENDOR_STRING) == 0);
  EXPECT(SHMEM_CMP_EQ == _SHMEM_CMP_EQ && SHMEM_CMP_NE == _SHMEM_CMP_NE);
  EXPECT(SHMEM_CMP_GT == _SHMEM_CMP_GT && SHMEM_CMP_GE == _SHMEM_CMP_GE);
  EXPECT(SHMEM_CMP_LT == _SHMEM_CMP_LT && SHMEM_CMP_LE == _SHMEM_CMP_LE);
}

TEST(old_memory_names, "annex F: shmalloc, shrealloc, shmemalign, shfree, _my_pe, _num_pes") {
  EXPECT_EQUAL(suite_me, _my_pe());
  EXPECT_EQUAL(suite_pe_count, _num_pes());
  EXPECT_EQUAL(suite_pe_count, shmem_num_pes());
  int* words = shmalloc(2 * sizeof *words);
  words[0] = suite_me;
  words = shrealloc(words, 1000 * sizeof *words);
  EXPECT_EQUAL(suite_me, words[0]);
  shmem_barrier_all();
  shmem_int_p(&words[999], suite_me, suite_right());
  shmem_barrier_all();
  EXPECT_EQUAL(suite_left(), words[999]);
  shfree(words);
  void* aligned = shmemalign(1024, 10);
  EXPECT_EQUAL(0, (uintptr_t)aligned % 1024);
  shfree(aligned);
}

TEST(old_waits, "9.10.1 wait: the deprecated names wait until the value is another") {
  long* word = suite_symmetric(sizeof *word);
  int* narrow = suite_symmetric(sizeof *narrow);
  long long* wide = suite_symmetric(sizeof *wide);
  short* small = suite_symmetric(sizeof *small);
  shmem_long_p(word, 1, suite_right());
  shmem_int_p(narrow, 2, suite_right());
  shmem_longlong_p(wide, 3, suite_right());
  shmem_short_p(small, 4, suite_right());
  shmem_wait(word, 0);
  shmem_long_wait(word, 0);
  shmem_int_wait(narrow, 0);
  shmem_longlong_wait(wide, 0);
  shmem_short_wait(small, 0);
  shmem_wait_until(word, SHMEM_CMP_EQ, 1);
  EXPECT(*word == 1 && *narrow == 2 && *wide == 3 && *small == 4);
}

TEST(old_unsigned_waits, "9.10.1 wait: the deprecated names of unsigned types") {
  unsigned short* small = suite_symmetric(sizeof *small);
  unsigned int* narrow = suite_symmetric(sizeof *narrow);
  unsigned long* word = suite_symmetric(sizeof *word);
  unsigned long long* wide = suite_symmetric(sizeof *wide);
  shmem_ushort_p(small, 1, suite_right());
  shmem_uint_p(narrow, 2, suite_right());
  shmem_ulong_p(word, 3, suite_right());
  shmem_ulonglong_p(wide, 4, suite_right());
  shmem_ushort_wait(small, 0);
  shmem_uint_wait(narrow, 0);
  shmem_ulong_wait(word, 0);
  shmem_ulonglong_wait(wide, 0);
  EXPECT(*small == 1 && *narrow == 2 && *word == 3 && *wide == 4);
}

TEST(profiling_control, "10.1 pcontrol: every level is accepted, and nothing changes") {
  for (int level = 0; level < 4; ++level) {
    shmem_pcontrol(level);
  }
  EXPECT_EQUAL(suite_me, shmem_my_pe());
}
