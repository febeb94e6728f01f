/* Prints the name of the library on PE 0: a little of everything in shmem.h, with any number of
   PEs. */
#include <weft/weft.h>

#include <shmem.h>
#include <stdio.h>
#undef NDEBUG
#include <assert.h>

static void take_turns(long* lock, long* ctr, int n) {
  for (int i = 0; i < 200; i++) {
    if (i % 3 == 0) {
      while (shmem_test_lock(lock));
    } else {
      shmem_set_lock(lock);
    }
    long v = shmem_g(ctr, 0);
    shmem_p(ctr, v + 1, 0);
    shmem_clear_lock(lock);
  }
  shmem_barrier_all();
  assert(shmem_g(ctr, 0) == 200L * n);
  assert(*lock == 0);
}

static void signal_next(int* di, int me, int n) {
  int next = (me + 1) % n;
  uint64_t* sig = shmem_calloc(1, 8);
  int data = me;
  shmem_put_signal(di, &data, 1, sig, 1, SHMEM_SIGNAL_ADD, next);
  assert(shmem_signal_wait_until(sig, SHMEM_CMP_EQ, 1) == 1);
  assert(*di == (me + n - 1) % n);
}

static void reduce(shmem_team_t t, short* sh, int me, int n) {
  double _Complex *z = shmem_calloc(2, 16), *z2 = shmem_calloc(2, 16);
  *z = me;
  assert(shmem_sum_reduce(SHMEM_TEAM_WORLD, z2, z, 1) == 0);
  assert(__real__ * z2 == n * (n - 1) / 2);
  assert(shmem_max_reduce(t, sh + 1, sh, 1) == 0 && sh[1] == 7);
}

static void put_and_get(long* a, long double* ld, short* sh, int me, int n) {
  int next = (me + 1) % n;
  shmem_p(a, (long)me + 1, next);
  shmem_p(ld, (long double)me, next);
  shmem_p(sh, (short)7, next);
  shmem_barrier_all();
  assert(a[0] == (me + n - 1) % n + 1);
  assert(*ld == (me + n - 1) % n);
  assert(*sh == 7);
  assert(shmem_g(a, me) == a[0]);
  const long* ca = a;
  assert(shmem_g(ca, me) == a[0]);
}

static void move_block(long* a, int next) {
  long cv[2] = {a[0], 3};
  shmem_wait_until_all_vector(a, 2, NULL, SHMEM_CMP_EQ, cv);
  assert(shmem_test_any_vector(a, 2, NULL, SHMEM_CMP_NE, cv) == SIZE_MAX);
  a = shmem_realloc(a, 4096);
  assert(a[1] == 3);
  shmem_iput(a + 10, cv, 2, 1, 2, next);
  shmem_barrier_all();
  assert(a[12] == 3);
}

// A context of the node's team, whose PE numbers are those of the node.
static void write_on_node(long* a, int me) {
  shmem_ctx_t node;
  assert(shmem_team_create_ctx(SHMEM_TEAM_SHARED, 0, &node) == 0);
  int node_me = shmem_team_my_pe(SHMEM_TEAM_SHARED), node_n = shmem_team_n_pes(SHMEM_TEAM_SHARED);
  shmem_p(node, a + 5, (long)me, (node_me + 1) % node_n);
  shmem_ctx_quiet(node);
  shmem_barrier_all();
  assert(a[5] == shmem_team_translate_pe(SHMEM_TEAM_SHARED, (node_me + node_n - 1) % node_n,
                                         SHMEM_TEAM_WORLD));
  shmem_ctx_destroy(node);
}

// What one of these flags asks for.
static void do_wrong(int* di, int n) {
  (void)di;
  (void)n;
#ifdef WRONG_ADDRESS
  int on_the_stack = 0;
  shmem_int_p(&on_the_stack, 1, 0);
#endif
#ifdef WRONG_COLLECTIVE
  static long sums[2];
  long here = 1;
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, sums, &here, 1);
  puts(weft_last_error());
  shmem_broadcast64(&here, sums, 1, 0, 0, 0, n, sums);
#endif
#ifdef WRONG_TWICE
  static long sides[4];
  shmem_team_t team = SHMEM_TEAM_WORLD;
  for (int i = 0; i < 3; i++) {
    assert(shmem_long_sum_inscan(SHMEM_TEAM_INVALID, sides, sides, 1) != 0);
    assert(shmem_long_broadcast(SHMEM_TEAM_WORLD, sides, sides + 1, 1, n) != 0);
  }
  assert(shmem_long_broadcast(SHMEM_TEAM_WORLD, sides, sides + 1, 1, -1) != 0);
  assert(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) != 0);
#endif
#ifdef TOO_LARGE
  void* block = shmem_malloc((size_t)1 << 40);
  assert(block == NULL && shmem_calloc((size_t)1 << 40, 8) == NULL);
  block = shmem_malloc(64);
  assert(block != NULL && shmem_realloc(block, (size_t)1 << 40) == NULL);
#endif
#ifdef WRONG_SET
  static long sync[SHMEM_BARRIER_SYNC_SIZE];
  shmem_barrier(0, 0, 1, sync);  // also on PE 1, which is not in the set
#endif
#ifdef WRONG_PE
  shmem_p(di, 1, n);
#endif
}

int main(void) {
  int prov;
  if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &prov) != 0) {
    return 1;
  }
  assert(prov == SHMEM_THREAD_MULTIPLE);
  int me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n;
  long* a = shmem_calloc(8, sizeof *a);
  long double* ld = shmem_malloc(32);
  short* sh = shmem_calloc(8, 2);
  put_and_get(a, ld, sh, me, n);
  shmem_ctx_t c;
  assert(shmem_ctx_create(0, &c) == 0);
  shmem_atomic_add(c, a + 1, 3L, next);
  assert(shmem_atomic_fetch_add(c, a + 2, 1L, next) == 0);
  shmem_ctx_quiet(c);
  shmem_wait_until(a + 1, SHMEM_CMP_EQ, 3L);
  shmem_team_t t, inv;
  shmem_team_config_t cfg = {2}, got = {0};
  assert(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -1, n, &cfg, SHMEM_TEAM_NUM_CONTEXTS,
                                  &t) == 0);
  assert(shmem_team_get_config(t, SHMEM_TEAM_NUM_CONTEXTS, &got) == 0 && got.num_contexts == 2);
  shmem_ctx_t tc;
  assert(shmem_team_create_ctx(t, 0, &tc) == 0);
  shmem_ctx_get_team(tc, &inv);
  assert(inv == t);
  shmem_p(tc, a + 3, (long)(100 + me), n - 1 - me);
  shmem_ctx_quiet(tc);
  assert(a[3] == 100 + me);
  write_on_node(a, me);
  reduce(t, sh, me, n);
  static long ps[SHMEM_SYNC_SIZE];
  static int gl;
  shmem_p(&gl, me + 1, next);
  shmem_barrier_all();
  assert(gl == (me + n - 1) % n + 1);
  shmem_sync(0, 0, n, ps);
  long* psync = shmem_calloc(SHMEM_SYNC_SIZE, 8);
  long* lock = shmem_calloc(1, 8);
  long* ctr = shmem_calloc(1, 8);
  shmem_barrier(0, 0, n, psync);
  shmem_sync(0, 0, n, psync);
  assert(shmem_sync(t) == 0);
  take_turns(lock, ctr, n);
  long* b = shmem_calloc(n, 8);
  long mine = me;
  a[4] = mine;
  assert(shmem_fcollect(SHMEM_TEAM_WORLD, b, a + 4, 1) == 0);
  for (int i = 0; i < n; i++) {
    assert(b[i] == i);
  }
  int* di = shmem_calloc(1, 4);
  signal_next(di, me, n);
  move_block(a, next);
  char name[SHMEM_MAX_NAME_LEN];
  shmem_info_get_name(name);
  if (!me) {
    puts(name);
  }
  shmem_ctx_destroy(tc);
  shmem_team_destroy(t);
  do_wrong(di, n);
#ifndef RETURNS
  shmem_finalize();
#endif
  return 0;
}
