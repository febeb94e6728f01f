/* Joins and leaves the job several times, each time with nested calls of init; with the argument
 * "once" only nested, once. Prints "again" on PE 0 if everything was as it should be each time. */
#include <shmem.h>
#include <stdio.h>
#include <string.h>

static long counter;

static int is_initialized(void) {
  int initialized = -1;
  shmem_query_initialized(&initialized);
  return initialized != 0;
}

/* One life of the library; 0 if something was wrong. */
static int live(int round) {
  int provided = -1;
  int is_right = !is_initialized();
  shmem_init();
  shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
  const int me = shmem_my_pe();
  const int right = (me + 1) % shmem_n_pes();
  long* words = shmem_calloc(2, sizeof *words);
  shmem_long_atomic_add(&words[0], round, right);
  shmem_long_atomic_inc(&counter, right);
  shmem_finalize(); /* a barrier */
  is_right = is_right && is_initialized() && words[0] == round && counter == round;
  words[1] = words[0];
  is_right = is_right && shmem_long_sum_inscan(SHMEM_TEAM_WORLD, &words[1], &words[0], 1) == 0;
  is_right = is_right && words[1] == (long)round * (me + 1);
  shmem_barrier_all();
  if (me == 0 && !is_right) {
    printf("wrong in round %d\n", round);
  }
  shmem_finalize();
  return is_right && !is_initialized();
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 && strcmp(argv[1], "once") == 0 ? 1 : 4;
  int is_right = 1;
  for (int round = 1; round <= rounds && is_right; ++round) {
    is_right = live(round);
  }
  if (is_right) {
    printf("again\n");
  }
  return !is_right;
}
