/* 9.2: SHMEM_THREAD_MULTIPLE: threads of a PE put, get, update and wait at the same time, on the
 * default context, on a shared one and on contexts of their own. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "tests/openshmem/suite.h"

enum { THREADS = 4, ROUNDS = 16, COUNT = 50 };

typedef struct worker {
  pthread_t thread;
  int index;
  shmem_ctx_t context;
} worker;

/* Runs `work` in THREADS threads at once. */
static void run_threads(void* (*work)(void*), worker* workers) {
  for (int i = 0; i < THREADS; ++i) {
    workers[i].index = i;
    EXPECT_EQUAL(0, pthread_create(&workers[i].thread, NULL, work, &workers[i]));
  }
  for (int i = 0; i < THREADS; ++i) {
    pthread_join(workers[i].thread, NULL);
  }
}

static void run_on(void* (*work)(void*), shmem_ctx_t context) {
  worker workers[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    workers[i].context = context;
  }
  run_threads(work, workers);
}

static long* data; /* THREADS blocks of COUNT */
static long* sums; /* one for all threads of all PEs, one a thread */
static uint64_t* flags;

static void take_memory(void) {
  data = suite_symmetric(THREADS * COUNT * sizeof *data);
  sums = suite_symmetric((THREADS + 1) * sizeof *sums);
  flags = suite_symmetric(THREADS * sizeof *flags);
}

/* Puts a block, reads it back, and adds to a sum that all threads of all PEs share. */
static void* put_get_add(void* argument) {
  const worker* me = argument;
  long* block = data + (ptrdiff_t)me->index * COUNT;
  long source[COUNT];
  long back[COUNT];
  for (long round = 0; round < ROUNDS; ++round) {
    for (long i = 0; i < COUNT; ++i) {
      source[i] = suite_me * 1000000L + me->index * 10000L + round * 100 + i;
    }
    shmem_ctx_long_put(me->context, block, source, COUNT, suite_right());
    shmem_ctx_quiet(me->context);
    shmem_ctx_long_get(me->context, back, block, COUNT, suite_right());
    EXPECT_EQUAL(source[0], back[0]);
    EXPECT_EQUAL(source[COUNT - 1], back[COUNT - 1]);
    shmem_ctx_long_atomic_add(me->context, &sums[0], 1, 0);
    shmem_ctx_long_atomic_fetch_add(me->context, &sums[1 + me->index], 2, suite_right());
  }
  shmem_ctx_quiet(me->context);
  return NULL;
}

static void expect_put_get_add(int times) {
  shmem_barrier_all();
  EXPECT_EQUAL((long)times * THREADS * ROUNDS * suite_pe_count, shmem_long_g(&sums[0], 0));
  for (int t = 0; t < THREADS; ++t) {
    EXPECT_EQUAL((long)times * 2 * ROUNDS, sums[1 + t]);
    for (long i = 0; i < COUNT; ++i) {
      EXPECT_EQUAL(suite_left() * 1000000L + t * 10000L + (ROUNDS - 1) * 100L + i,
                   data[t * COUNT + i]);
    }
  }
}

TEST(level_provided,
     "9.2.1 init_thread: provides SHMEM_THREAD_MULTIPLE, and query_thread says so") {
  int level = -1;
  shmem_query_thread(&level);
  EXPECT_EQUAL(SHMEM_THREAD_MULTIPLE, level);
}

TEST(on_default_context, "9.2 threads: four at once on the default context") {
  take_memory();
  run_on(put_get_add, SHMEM_CTX_DEFAULT);
  expect_put_get_add(1);
}

TEST(on_shared_context, "9.2 threads: four at once on one created context") {
  take_memory();
  shmem_ctx_t context = SHMEM_CTX_INVALID;
  EXPECT_EQUAL(0, shmem_ctx_create(0, &context));
  run_on(put_get_add, context);
  shmem_ctx_destroy(context);
  expect_put_get_add(1);
}

static void* with_own_context(void* argument) {
  worker* me = argument;
  EXPECT_EQUAL(0, shmem_ctx_create(SHMEM_CTX_PRIVATE, &me->context));
  put_get_add(me);
  shmem_ctx_destroy(me->context);
  return NULL;
}

TEST(on_own_contexts, "9.2 threads: each creates, uses and destroys a private context of its own") {
  take_memory();
  run_on(with_own_context, SHMEM_CTX_INVALID);
  expect_put_get_add(1);
}

/* Thread t of each PE plays with thread t of its neighbours: signal to the right, wait for the
   left. */
static void* pass_signals(void* argument) {
  const worker* me = argument;
  long* slot = data + (ptrdiff_t)me->index * COUNT;
  for (uint64_t round = 1; round <= ROUNDS; ++round) {
    const long value = (long)round * 10 + me->index;
    shmem_fence(); /* nothing else orders two signals */
    shmem_long_put_signal(&slot[round], &value, 1, &flags[me->index], round, SHMEM_SIGNAL_SET,
                          suite_right());
    shmem_signal_wait_until(&flags[me->index], SHMEM_CMP_GE, round);
    EXPECT_EQUAL((long)round * 10 + me->index, slot[round]);
  }
  return NULL;
}

TEST(waits_of_threads, "9.2 threads: four wait at once, each for a signal of its own") {
  take_memory();
  run_on(pass_signals, SHMEM_CTX_DEFAULT);
}

/* Thread 0 wakes thread 1, and so on, by stores of this PE alone. */
static void* wake_next(void* argument) {
  const worker* me = argument;
  if (me->index > 0) {
    shmem_uint64_wait_until(&flags[me->index], SHMEM_CMP_EQ, 1);
  }
  if (me->index + 1 < THREADS) {
    shmem_uint64_atomic_set(&flags[me->index + 1], 1, suite_me);
  }
  return NULL;
}

TEST(waits_within_a_pe, "9.10.1 wait_until: a thread waits for another thread of its own PE") {
  take_memory();
  run_on(wake_next, SHMEM_CTX_DEFAULT);
}

static void* count_with_fences(void* argument) {
  (void)argument;
  for (int round = 0; round < ROUNDS; ++round) {
    shmem_int_atomic_inc((int*)&sums[0], 0);
    shmem_fence();
    shmem_quiet();
  }
  return NULL;
}

TEST(fences_of_threads, "9.2 threads: fence and quiet from several at once") {
  take_memory();
  run_on(count_with_fences, SHMEM_CTX_DEFAULT);
  shmem_barrier_all();
  EXPECT_EQUAL(THREADS * ROUNDS * suite_pe_count, shmem_int_g((int*)&sums[0], 0));
}

/* A collective by one thread, while the others of its PE communicate. */
static void* reduce_or_put(void* argument) {
  const worker* me = argument;
  if (me->index != 0) {
    put_get_add(argument);
    return NULL;
  }
  for (long round = 0; round < ROUNDS / 4; ++round) {
    data[round] = suite_me + round; /* block 0 is not used by the putting threads */
    shmem_barrier_all();
    EXPECT_EQUAL(0, shmem_long_max_reduce(SHMEM_TEAM_WORLD, &sums[1], &data[round], 1));
    EXPECT_EQUAL(suite_pe_count - 1 + round, sums[1]);
  }
  return NULL;
}

TEST(collective_beside_puts, "9.2 threads: one is in collectives while the others put and get") {
  take_memory();
  run_on(reduce_or_put, SHMEM_CTX_DEFAULT);
  shmem_barrier_all();
  EXPECT_EQUAL((long)(THREADS - 1) * ROUNDS * suite_pe_count, shmem_long_g(&sums[0], 0));
}

int main(int argc, char** argv) {
  int provided = -1;
  if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0 ||
      provided != SHMEM_THREAD_MULTIPLE) {
    return 4;
  }
  const int status = suite_main(argc, argv);
  shmem_finalize();
  return status;
}
